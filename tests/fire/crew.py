"""Worker processes, seen from outside: started, given orders, stopped and killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests.fire.actors import ActorSpec, Settings
from tests.fire.worker import Order, WorkerSpec

ROOT = Path(__file__).parents[2]


class Hand:
    """One worker process."""

    def __init__(self, spec: WorkerSpec) -> None:
        self.spec = spec
        with Path(spec.folder, f"{spec.name}.err").open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fire.worker"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        self._write(spec)

    def await_ready(self) -> None:
        self._read()

    def order(self, do: str, **facts: Any) -> Any:
        """Give an order and return the reply."""
        self._write(Order(do, facts))
        return self._read()

    def begin(self, do: str) -> None:
        """Give an order, and leave its reply for `await_ready`."""
        self._write(Order(do))

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Do what the kernel does when memory is short."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the process, whatever its state."""
        self._process.kill()
        self._process.communicate()

    def _write(self, value: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(value) + b"\n")
        self._process.stdin.flush()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            errors = Path(self.spec.folder, f"{self.spec.name}.err").read_text()
            raise RuntimeError(f"worker {self.spec.name} ended:\n{errors}")
        return msgspec.json.decode(line)


class Crew:
    """The workers of a round or a tour, which all write their logs into one folder."""

    def __init__(self, folder: Path, settings: Settings, mutant: str = "") -> None:
        self.folder = folder
        self.settings = settings
        self._mutant = mutant
        self.hands: dict[str, Hand] = {}
        self._started = 0

    def start(self, actors: Sequence[ActorSpec] = ()) -> Hand:
        """Start a process; it is not ready yet."""
        self._started += 1
        name = f"p{self._started}"
        spec = WorkerSpec(name, str(self.folder), self.settings, list(actors), self._mutant)
        self.hands[name] = Hand(spec)
        return self.hands[name]

    def replace(self, name: str) -> None:
        """Start a process that does the same as one that was killed."""
        old = self.hands.pop(name)
        old.close()
        self.start(old.spec.actors).await_ready()

    def stop(self) -> None:
        """Stop every process, and let its actors finish."""
        for hand in self.hands.values():
            hand.begin("stop")
        for hand in self.hands.values():
            hand.await_ready()

    def close(self) -> None:
        for hand in self.hands.values():
            hand.close()


@contextmanager
def crew_of(folder: Path, settings: Settings, mutant: str = "") -> Iterator[Crew]:
    """Give the block a crew, and end its processes with the block."""
    crew = Crew(folder, settings, mutant)
    try:
        yield crew
    finally:
        crew.close()
