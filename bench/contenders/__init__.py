"""The contenders by name; a peer is imported only in the run that measures it."""

from importlib import import_module

from bench.contender import Contender


def contender(name: str) -> Contender:
    """Return a contender: `pgqueuer_100` is the peer of that name with that batch size."""
    module, _, argument = name.partition("_")
    arguments = [int(argument)] if argument else []
    found: Contender = import_module(f"bench.contenders.{module}").Contestant(*arguments)
    return found
