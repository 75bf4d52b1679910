"""A second process of the same contender: the receiver of pings, or one of several consumers."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.contender import Contender
from bench.contenders import open_contender

READY = "ready"
MARK = "result: "


class Partner:
    """The second process, seen from the first one."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def await_ready(self) -> None:
        """Wait until the process is ready."""
        self._line(READY)

    def go(self) -> None:
        """Let the process start."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def result(self) -> Any:
        """Wait for the result of its method."""
        return json.loads(self._line(MARK))

    def _line(self, start: str) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(start):
                return line.removeprefix(start)
        raise EOFError(f"the second process ended before it said {start!r}")


@contextmanager
def partner(contender: Contender, method: str, messages: int) -> Iterator[Partner]:
    """Start a process that calls a method of the same contender on the same store."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench.partner"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps([contender.name, contender.url, method, messages]) + "\n")
        process.stdin.flush()
        yield Partner(process)


def main() -> None:
    """Make the call that the first line of standard input describes."""
    name, url, method, messages = json.loads(sys.stdin.readline())
    contender = open_contender(name, url)
    if method == "receive":
        result: object = contender.receive(messages, _say_ready)
    else:
        _say_ready()
        sys.stdin.readline()
        result = getattr(contender, method)(messages)
    print(f"{MARK}{json.dumps(result)}", flush=True)
    contender.close()


def _say_ready() -> None:
    print(READY, flush=True)


if __name__ == "__main__":
    main()
