"""How long a queue keeps its history and its buried messages."""

from dataclasses import dataclass
from datetime import timedelta

from duequeue.errors import InvalidArgument
from duequeue.instants import positive_millis


@dataclass(frozen=True, slots=True)
class Retention:
    """How long rows of the history and buried messages are kept; None keeps them for ever."""

    history: timedelta | None = None
    buried: timedelta | None = None

    def __post_init__(self) -> None:
        for argument, span in (("history", self.history), ("buried", self.buried)):
            if span is not None:
                positive_millis(span, argument)
        if self.history is None and self.buried is None:
            raise InvalidArgument("retention", "must name history, buried or both")
