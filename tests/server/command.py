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

from duequeue.process.own_token import find_own_token

PATIENCE = 30.0
COMMAND = ("-m", "duequeue", "serve", "--drain", "0")  # tests do not wait for load balancers


class ServeProcess:
    """A running `duequeue serve`; one that is to restart needs a `free_port`.

    A command before it, such as `prlimit`, may change what it runs under.
    """

    def __init__(
        self, *arguments: str, folder: Path, port: int = 0, under: tuple[str, ...] = ()
    ) -> None:
        self.folder = folder
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        environment.pop("DUEQUEUE_URL", None)
        place = () if "--socket" in arguments else ("--port", str(port))
        self.process = subprocess.Popen(
            [*under, sys.executable, *COMMAND, *place, *arguments],
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
        return self.read_line().removeprefix("token: ").strip()

    def read_line(self) -> str:
        """Return the next line that it prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def client(self) -> httpx.Client:
        """Return a client with the token that the server keeps for its user, if there is one."""
        token = own_token(self.port)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE, trust_env=False)

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


def own_token(port: int | None) -> str | None:
    """Return the token that a server keeps for its user."""
    return find_own_token("127.0.0.1", port or 0)


@contextmanager
def serving(
    *arguments: str, folder: Path, port: int = 0, under: tuple[str, ...] = ()
) -> Iterator[ServeProcess]:
    """Run the command for as long as the block lasts."""
    running = ServeProcess(*arguments, folder=folder, port=port, under=under)
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
