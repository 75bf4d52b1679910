"""DueQueue in memory."""

from bench.contender import Contender
from bench.contenders.duequeue_blocking import Blocking


class InMemory(Blocking):
    """`Queue` in a single process."""

    notes = "lost when its process ends"

    ping = Contender.ping  # there is no other process
