"""The part of a tick's key that tells one configuration from another."""

from dataclasses import dataclass
from hashlib import sha256

from duequeue.schedules.schedule import Schedule

MAX_HASH_LENGTH = 64
_COMPUTED_LENGTH = 16


@dataclass(frozen=True, slots=True)
class ConfigHash:
    """A name for a configuration, taken as it is: 1 to 64 characters without `/`."""

    text: str

    def __post_init__(self) -> None:
        text = checked_part(self.text, "config_hash", MAX_HASH_LENGTH)
        object.__setattr__(self, "text", text)
        if "/" in self.text:
            raise ValueError(f"config_hash must not contain '/', which ends it: {self.text!r}")

    def __str__(self) -> str:
        return self.text

    @classmethod
    def of(cls, schedule: Schedule) -> "ConfigHash":
        """Return the hash of a schedule's text: equal for schedules that tick alike."""
        return cls(sha256(schedule.text.encode()).hexdigest()[:_COMPUTED_LENGTH])


def checked_part(text: str, argument: str, longest: int) -> str:
    """Return a part of a key, or raise for one that no store could keep exactly."""
    if not isinstance(text, str):
        raise TypeError(f"{argument} must be a str, not {type(text).__name__}")
    if not 1 <= len(text) <= longest:
        raise ValueError(f"{argument} must have 1 to {longest} characters, not {len(text)}")
    if "\0" in text:
        raise ValueError(f"{argument} must not contain NUL: {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{argument} is not valid Unicode text: {text!r}") from error
    return str.__str__(text)  # of a str that is an enum, an f-string would make something else
