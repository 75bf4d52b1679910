"""The logs of a round, read back: the calls, the faults, and the clocks that moved."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from tests.fire.entries import Answered, Call, Delivered, Entry, Invoked, Noted

FOREVER = 2**62


@dataclass
class Made:
    """A call as it was made: when it began and ended, and what the injected clock may have read.

    As far as the log knows, a call without an answer never ended.
    """

    process: str
    number: int
    actor: str
    queue: str
    call: Call
    began: int
    clock_low: int
    clock_high: int = FOREVER
    ended: int = FOREVER
    answer: Any = None
    error: str = ""

    @property
    def known(self) -> bool:
        """Whether its outcome is known."""
        return self.ended < FOREVER and not self.error

    @property
    def name(self) -> str:
        return f"{self.process}#{self.number}"

    def __str__(self) -> str:
        words = f"{self.name:10} at {self.clock_low} {self.call.do} {self.call}"
        return f"{words} -> {self.error or self.answer}"

    def delivered(self) -> list[Delivered]:
        """Return the answer of a poll."""
        return msgspec.convert(self.answer or [], list[Delivered])


@dataclass(frozen=True)
class Window:
    """A fault: its name, when it lasted, and what it may have done to calls of that time.

    A fault that loses replies makes the program repeat calls that may already have succeeded. A
    fault that undoes leases takes back the polls of the last moments.
    """

    fault: str
    began: int
    ended: int
    process: str = ""
    loses_replies: bool = False
    undoes_leases: bool = False

    def meets(self, began: int, ended: int, process: str) -> bool:
        here = self.process in {"", process}
        return here and self.began < ended and began < self.ended


@dataclass
class Logs:
    """Everything that the logs of a round say."""

    calls: list[Made] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    stalls: list[Window] = field(default_factory=list)
    notes: list[tuple[str, Noted]] = field(default_factory=list)

    def of_queues(self) -> dict[str, list[Made]]:
        """Return the calls by queue, each in the order in which they began."""
        queues: dict[str, list[Made]] = defaultdict(list)
        for made in sorted(self.calls, key=lambda made: made.began):
            queues[made.queue].append(made)
        return queues

    def events(self, event: str) -> Iterator[tuple[str, Noted]]:
        """Return the notes of one kind, each with its process."""
        return ((process, note) for process, note in self.notes if note.event == event)


def read_logs(folder: Path) -> Logs:
    """Read the logs of all processes."""
    logs = Logs()
    for path in sorted(folder.glob("*.jsonl")):
        _read(logs, path.stem, entries_of(path))
    return logs


def entries_of(path: Path) -> Iterator[Entry]:
    """Return the lines of a log; the last one may be cut short by a kill or a full disk."""
    decode = msgspec.json.Decoder(Entry).decode
    for line in path.read_bytes().splitlines():
        try:
            yield decode(line)
        except msgspec.DecodeError:
            return


def _read(logs: Logs, process: str, entries: Iterable[Entry]) -> None:
    open_calls: dict[int, Made] = {}
    faults: dict[int, Noted] = {}
    for entry in entries:
        match entry:
            case Invoked(number, actor, queue, at, clock, call):
                made = Made(process, number, actor, queue, call, at, clock)
                open_calls[number] = made
                logs.calls.append(made)
            case Answered():
                _end(open_calls.pop(entry.number), entry)
            case Noted(event):
                logs.notes.append((process, entry))
                if event == "clock":
                    _move_clock(open_calls.values(), entry)
                elif event == "stall":
                    stall = Window("stall", entry.facts["since"], entry.at, process)
                    logs.stalls.append(stall)
                elif event == "fault begins":
                    faults[entry.facts["fault_number"]] = entry
                elif event == "fault ends":
                    begin = faults.pop(entry.facts["fault_number"])
                    logs.windows.append(_window(begin, entry.at))
    logs.windows += [_window(begin, FOREVER) for begin in faults.values()]


def _end(made: Made, entry: Answered) -> None:
    made.ended, made.answer, made.error = entry.at, entry.answer, entry.error
    made.clock_high = max(made.clock_low, entry.clock, made.clock_high % FOREVER)
    made.clock_low = min(made.clock_low, entry.clock)


def _move_clock(running: Iterable[Made], note: Noted) -> None:
    """Widen what the clock may have read during the calls that saw it move."""
    for made in running:
        if made.actor == note.actor:
            readings = (note.facts["was"], note.facts["now"])
            made.clock_low = min(made.clock_low, *readings)
            made.clock_high = max(made.clock_high % FOREVER, *readings)


def _window(begin: Noted, ended: int) -> Window:
    facts = begin.facts
    return Window(
        facts["fault"],
        begin.at,
        ended,
        facts.get("process", ""),
        facts.get("loses_replies", False),
        facts.get("undoes_leases", False),
    )
