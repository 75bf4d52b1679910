"""A server in a process of its own, and the time that it has computed."""

import os
import subprocess
import sys
from collections.abc import Sequence

from tests.fixtures.servers import free_port

TICK = os.sysconf("SC_CLK_TCK")


class ServerProcess:
    """A command of Python that listens at a port, and prints a line once it does."""

    def __init__(self, command: Sequence[str]) -> None:
        self.port = free_port()
        self._process = subprocess.Popen(
            [sys.executable, *command, "--port", str(self.port)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline(), "the server did not start"

    def computed(self) -> float:
        """Return the seconds for which it has used a core."""
        with open(f"/proc/{self._process.pid}/stat") as file:  # noqa: PTH123 - not a file on a disk
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def stop(self) -> None:
        """End the server."""
        self._process.terminate()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
