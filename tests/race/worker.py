"""A process that does what a test tells it: `python -m tests.race.worker`.

It speaks pickle on its standard streams: a call comes in, `READY` goes out once the call is
understood, a byte comes in that says go, and in the end an `Outcome` goes out.
"""

import pickle
import signal
import sys
import traceback
from importlib import import_module
from typing import Any, NamedTuple

READY = "ready"
GO = b"!"

_replies = sys.stdout.buffer


class Told(NamedTuple):
    """Something a call wants known while it still runs."""

    value: Any


class Outcome(NamedTuple):
    """How a call ended: what it returned, or the words of what it raised."""

    value: Any
    error: str | None = None


def tell(value: object) -> None:
    """Let the test know how far this process has come."""
    _send(Told(value))


def main() -> None:
    # Whoever runs the tests in the background has us ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    commands = sys.stdin.buffer
    sys.stdout = sys.stderr  # the replies have the real one for themselves
    while True:
        try:
            call = pickle.load(commands)  # noqa: S301 - it comes from the test that started us
        except EOFError:
            return
        _send(READY)
        commands.read(len(GO))
        try:
            outcome = Outcome(call())
        except BaseException:  # noqa: BLE001 - whatever it is, the test is to hear of it
            outcome = Outcome(None, traceback.format_exc())
        _send(outcome)


def _send(reply: object) -> None:
    pickle.dump(reply, _replies)
    _replies.flush()


if __name__ == "__main__":
    # Under its real name, because what is pickled is looked up there.
    import_module("tests.race.worker").main()
