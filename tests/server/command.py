"""`duequeue serve` as a process of its own."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx

PATIENCE = 30.0
COMMAND = ("-m", "duequeue", "serve", "--drain", "0")  # tests do not wait for load balancers


class ServeProcess:
    """A running `duequeue serve`; one that is to restart needs a `free_port`."""

    def __init__(self, *arguments: str, folder: Path, port: int = 0) -> None:
        self.folder = folder
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        environment.pop("DUEQUEUE_URL", None)
        self.process = subprocess.Popen(
            [sys.executable, *COMMAND, "--port", str(port), *arguments],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        self.first_line = self.process.stdout.readline()
        assert self.first_line.startswith("serving "), self.first_line + self.rest()

    @property
    def url(self) -> str:
        found = re.search(r"https?://\S+", self.first_line)
        assert found is not None
        return found[0]

    @property
    def port(self) -> int:
        found = urlsplit(self.url).port
        assert found is not None
        return found

    def read_token(self) -> str:
        """Return the token that the next line prints."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return line.removeprefix("token: ").strip()

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=PATIENCE, trust_env=False)

    def terminate(self) -> int:
        """Send SIGTERM, and return the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)

    def rest(self) -> str:
        """Return what it printed after the first line; it must have ended."""
        return self.process.communicate(timeout=PATIENCE)[0]


@contextmanager
def serving(*arguments: str, folder: Path, port: int = 0) -> Iterator[ServeProcess]:
    """Run the command for as long as the block lasts."""
    running = ServeProcess(*arguments, folder=folder, port=port)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.kill()
        if running.process.stdout is not None:
            running.process.stdout.close()


def refused(*arguments: str, folder: Path) -> str:
    """Return what the command prints when it does not start."""
    environment = {name: text for name, text in os.environ.items() if name != "DUEQUEUE_URL"}
    ended = subprocess.run(
        [sys.executable, "-m", "duequeue", "serve", "--port", "0", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode in {1, 2}, ended
    return ended.stderr
