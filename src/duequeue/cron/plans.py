"""Which ticks a cron wants, and when it wants to look again."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, Protocol, TypeVar

from duequeue.errors import InvalidArgument, InvalidType
from duequeue.schedules.own_schedule import contained
from duequeue.schedules.tick import ConfigHash, CronMessage

T = TypeVar("T")


class Plan(Protocol):
    """Which ticks one installed cron wants, and when it looks again."""

    @property
    def prefix(self) -> str:
        """What the keys of its ticks begin with."""

    @property
    def config_hash(self) -> ConfigHash:
        """Which configuration it is."""

    @property
    def description(self) -> str:
        """The schedule in words, if there is one."""

    @property
    def makes_up(self) -> bool:
        """Whether missed ticks are made up for at all."""

    @property
    def payload_is_function(self) -> bool:
        """Whether its messages hold a function of the tick's instant that makes the payload.

        Most runs find that the ticks are there already, and need no payload.
        """

    @property
    def headers(self) -> Mapping[str, str] | None:
        """The headers of its messages, if all of them have the same."""

    def payload_for(self, at: datetime) -> Any:
        """Return the payload of an extra message, or raise if there is none."""

    def ahead(self, now: datetime) -> Sequence[CronMessage[Any]]:
        """Return the ticks to come that belong in the queue at `now`."""

    def missed(
        self, after: datetime, now: datetime, known: AbstractSet[int]
    ) -> Sequence[CronMessage[Any]]:
        """Return the ticks to make up for: later than `after`, past, and not known."""

    def next_run(self, now: datetime) -> datetime:
        """Return when to look again after a run at `now`."""


@dataclass(frozen=True)
class Generated(Generic[T]):
    """Ticks that the user's own function comes up with."""

    prefix: str
    config_hash: ConfigHash
    interval: timedelta
    generate: Callable[[datetime], Iterable[CronMessage[T]]]
    description: str = ""
    makes_up: bool = False  # only the function could know what was missed
    payload_is_function: bool = False
    headers: Mapping[str, str] | None = None

    def payload_for(self, at: datetime) -> Any:  # noqa: ARG002 - the plan's signature
        """Refuse, because only the function knows the payloads."""
        raise InvalidArgument(
            "prefix",
            text=f"cron {self.prefix!r} gets its messages from a function of yours, so it has no "
            "payload to run now: offer the message yourself",
        )

    def ahead(self, now: datetime) -> list[CronMessage[T]]:
        """Call the function."""
        messages = contained(lambda: list(self.generate(now)))
        for message in messages:
            if not isinstance(message, CronMessage):
                raise InvalidType("generate", f"must return CronMessage objects, not {message!r}")
        return messages

    def missed(
        self,
        after: datetime,  # noqa: ARG002 - the plan's signature
        now: datetime,  # noqa: ARG002 - likewise
        known: AbstractSet[int],  # noqa: ARG002 - likewise
    ) -> list[CronMessage[T]]:
        """Return no ticks."""
        return []

    def next_run(self, now: datetime) -> datetime:
        """Look again after the interval."""
        return now + self.interval
