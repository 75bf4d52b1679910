"""The costs of each simulated day by stage, kept as JSON."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

MILLION = 1_000_000


@dataclass(frozen=True)
class Day:
    """Seconds by stage, MB by place, and peak memory in MB by kind of process."""

    messages: int
    seconds: dict[str, float]
    megabytes: dict[str, float]
    memory: dict[str, float]


@dataclass
class Costs:
    """The days so far, and the facts about the machine."""

    about: dict[str, str] = field(default_factory=dict)
    days: list[Day] = field(default_factory=list)

    def messages_until(self, number: int) -> int:
        """Return the number of messages up to the end of a day; days count from 0."""
        return sum(day.messages for day in self.days[: number + 1])

    def seconds_per_million(self, stage: str, number: int) -> float:
        """Return the time of a stage; the report covers all days so far."""
        day = self.days[number]
        messages = self.messages_until(number) if stage == "report" else day.messages
        return day.seconds[stage] * MILLION / messages

    def megabytes_per_million(self, place: str, number: int) -> float:
        """Return the size of a day's messages."""
        return self.days[number].megabytes[place] * MILLION / self.days[number].messages

    def write(self, path: Path) -> None:
        """Write all costs."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read costs that were written before."""
        kept = json.loads(path.read_text())
        return cls(kept["about"], [Day(**day) for day in kept["days"]])
