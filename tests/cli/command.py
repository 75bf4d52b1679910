"""The `duequeue` command in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL, Signals
from typing import Self

ROOT = Path(__file__).parents[2]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "duequeue", *arguments]


def run(
    *arguments: str, url: str | None = None, folder: Path = ROOT
) -> "subprocess.CompletedProcess[str]":
    """Run a command in a folder, to its end."""
    return subprocess.run(
        command(*arguments),
        cwd=folder,
        env=environment(url),
        capture_output=True,
        text=True,
        check=False,
    )


def environment(url: str | None) -> dict[str, str]:
    given = {name: each for name, each in os.environ.items() if not name.startswith("DUEQUEUE_")}
    given["XDG_CONFIG_HOME"] = os.devnull  # the defaults of the tester must not count
    given["MPLCONFIGDIR"] = str(Path(sys.prefix) / "matplotlib")  # which it would look for there
    return given if url is None else given | {"DUEQUEUE_URL": url}


class Worker:
    """A worker that runs in a process group of its own."""

    def __init__(self, handler: str, url: str | None, *arguments: str, **variables: str) -> None:
        """Start it with a handler of ours, or else, without a URL, with another module's."""
        own = (f"tests.cli.handlers:{handler}", "--queue", "orders") if url else (handler,)
        self._process = subprocess.Popen(
            command("worker", *own, *arguments),
            cwd=ROOT,
            env=environment(url) | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.printed: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        """Leave nothing behind, whatever became of the test."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def lines(self) -> Iterator[str]:
        """Read what it prints, as it prints it."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.printed.append(line)
            yield line

    def await_lines(self, beginning: str, count: int = 1) -> list[list[str]]:
        """Wait for that many lines with a beginning, and return their words."""
        found = []
        for line in self.lines():
            if line.startswith(beginning):
                found.append(line.split())
                if len(found) == count:
                    return found
        raise AssertionError("".join(["it ended, having printed:\n", *self.printed]))

    def send(self, number: Signals) -> None:
        """Send a signal to the process that was started."""
        self._process.send_signal(number)

    def send_all(self, number: Signals) -> None:
        """Send a signal to every process at once, as a terminal or a service manager does."""
        os.killpg(self._process.pid, number)

    def end(self) -> tuple[int, str]:
        """Wait until every process has ended; return the status and all that was printed."""
        for _ in self.lines():
            pass
        return self._process.wait(), "".join(self.printed)
