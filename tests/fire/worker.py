"""A worker process: `python -m tests.fire.worker`, with its orders on the standard input.

The first line says what it is. Each further line is an order, and each reply a line of its own.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from duequeue import Queue
from tests.fire import mutants
from tests.fire.actors import Actor, ActorSpec, Settings
from tests.fire.draining import drain
from tests.fire.logs import read_logs
from tests.fire.recorder import Recorder, instant
from tests.fire.scripted import Scripted

HEARTBEAT = 0.05
# A gap between two heartbeats that is longer than this is a stall, whatever the reason.
STALL = 0.2
# How many seconds an actor has to end. Its retries and its consumer's grace take less.
PATIENCE = 60.0


class WorkerSpec(msgspec.Struct):
    """One process of a round, or of a tour if it has no actors."""

    name: str
    folder: str
    settings: Settings
    actors: list[ActorSpec] = []
    mutant: str = ""


class Order(msgspec.Struct):
    """An order for a worker, and the facts that it needs."""

    do: str
    facts: dict[str, Any] = {}


def in_memory(spec: WorkerSpec) -> bool:
    return spec.settings.url.startswith("memory:")


class Worker:
    """The actors of this process."""

    def __init__(self, spec: WorkerSpec) -> None:
        self._spec = spec
        self._recorder = Recorder(Path(spec.folder, f"{spec.name}.jsonl"))
        store = spec.settings.url.partition(":")[0]
        self._recorder.noted("started", pid=os.getpid(), mutant=spec.mutant, store=store)
        self._actors = [
            Actor(spec.name, each, spec.settings, self._recorder) for each in spec.actors
        ]
        self._scripted = Scripted(spec.name, spec.settings, self._recorder, self._keys)
        self._orders: dict[str, Callable[..., Any]] = {
            "stop": self.stop,
            "jump": self.jump,
            "drain": self.drain,
        }

        # A store in memory ends with the last queue that is open on it.
        self._kept = Queue.open(spec.settings.url, "kept") if in_memory(spec) else None

    def start(self) -> None:
        threading.Thread(target=self._beat, daemon=True).start()
        for actor in self._actors:
            actor.thread.start()

    def obey(self, order: Order) -> Any:
        return self._orders.get(order.do, self._scripted.obey(order.do))(**order.facts)

    def stop(self) -> None:
        """Stop every actor, and record those that do not end."""
        for actor in self._actors:
            actor.stopping.set()
        gives_up_at = time.monotonic() + PATIENCE
        for actor in self._actors:
            actor.thread.join(max(0, gives_up_at - time.monotonic()))
            if actor.thread.is_alive():
                self._recorder.noted("hung", actor.spec.name, role=actor.spec.role)

    def jump(self, actor: str, by: int) -> None:
        """Move the clock of one actor."""
        for each in self._actors:
            if each.spec.name == actor:
                each.jump(by)

    def drain(self, queues: list[str]) -> None:
        """Empty the queues."""
        for queue in queues:
            drain(self._spec.name, queue, self._spec.settings, self._recorder, self._keys)

    def _keys(self) -> set[str]:
        """Return every key that the logs know."""
        calls = [made.call for made in read_logs(Path(self._spec.folder)).calls]
        offers = [item for call in calls for item in (call, *call.items)]
        return {call.key for call in offers if call.key}

    def _beat(self) -> None:
        """Record when this process did not run, because it was stopped or the machine was busy."""
        before = time.monotonic()
        while True:
            time.sleep(HEARTBEAT)
            now = time.monotonic()
            if now - before > STALL:
                self._recorder.noted("stall", since=instant() - round((now - before) * 1e6))
            before = now


def main() -> None:
    orders = sys.stdin.buffer
    spec = msgspec.json.decode(orders.readline(), type=WorkerSpec)
    if spec.mutant:
        mutants.apply(spec.mutant)
    worker = Worker(spec)
    worker.start()
    _reply("ready")
    for line in orders:
        _reply(worker.obey(msgspec.json.decode(line, type=Order)))
    os._exit(0)  # whatever still hangs has been recorded


def _reply(value: Any) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
