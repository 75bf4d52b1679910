"""A peer on Node.js, whose driver makes and times the calls and answers in JSON."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.contender import Contender

FOLDER = Path(__file__).parent / "node"


class NodePeer(Contender):
    """The process of one driver."""

    script = ""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        # The wheel installs it next to the interpreter.
        node = shutil.which("node", path=str(Path(sys.executable).parent)) or "node"
        self._process = subprocess.Popen(
            [node, FOLDER / self.script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.ask("open", url, self.payload)

    def close(self) -> None:
        """End the process."""
        self.ask("close")
        self._process.communicate(timeout=10)

    def load(self, messages: int) -> None:
        """Put in messages."""
        self.ask("load", messages)

    def receive(self, messages: int, ready: Callable[[], None]) -> list[float]:
        """Run a worker."""
        ages: list[float] = self.ask("receive", messages, ready=ready)
        return ages

    def ping(self, messages: int) -> None:
        """Send messages."""
        self.ask("ping", messages)

    def ask(self, method: str, *values: object, ready: Callable[[], None] = lambda: None) -> Any:
        """Call a method of the driver."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([method, *values]) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            answer = json.loads(line)
            if "error" in answer:
                raise RuntimeError(answer["error"])
            if "result" in answer or not answer:
                return answer.get("result")
            ready()
        raise RuntimeError(f"{self.script} ended without an answer")


def asked(method: str) -> Callable[..., Any]:
    """Return a method that calls the driver, and returns its answer."""

    def call(self: NodePeer, *values: float) -> object:
        return self.ask(method, *values)

    return call
