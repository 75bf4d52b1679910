"""A program that can be killed, stopped for a while, and started again."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from random import Random


class Program:
    """A module of Python that runs in a process of its own, and prints `ready` when it works."""

    def __init__(self, arguments: Callable[[], list[str]]) -> None:
        self._arguments = arguments
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
        self._process.communicate()

    def _start(self) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", *self._arguments()]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process
