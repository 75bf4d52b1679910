"""A program that can be killed, stopped for a while, and started again."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random


class Program:
    """A module of Python that runs in a process of its own, and prints `ready` when it works."""

    def __init__(self, arguments: Callable[[], list[str]], errors: Path) -> None:
        self._arguments = arguments
        self._errors = errors
        self._process = self._start()

    def kill(self) -> None:
        """End the process without a warning, and start another one in its place."""
        self.close()
        self._process = self._start()

    def pause(self, random: Random) -> None:
        """Keep the process from running for a while, perhaps for longer than a lease."""
        self._process.send_signal(signal.SIGSTOP)
        time.sleep(random.uniform(0.5, 3.0))
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _start(self) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", *self._arguments()]
        with self._errors.open("ab") as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert process.stdout is not None
        with process.stdout as printed:
            if printed.readline() != "ready\n":
                raise RuntimeError(f"{command} ended:\n{self._errors.read_text()}")
        return process
