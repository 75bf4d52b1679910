"""A queue in shards has a rule for every operation of the port."""

import inspect
from typing import Any

import pytest

from duequeue.port.burial_table import BurialTable
from duequeue.port.cron_table import CronTable
from duequeue.port.remote import OPERATIONS
from duequeue.port.store import Store
from duequeue.stores.sharded import NoCrons, ShardedBurials, ShardedStore

PARTS = {Store: ShardedStore, BurialTable: ShardedBurials, CronTable: NoCrons}


@pytest.mark.parametrize(("port", "sharded"), PARTS.items())
def test_every_operation_of_the_port_has_a_rule(port: type, sharded: type) -> None:
    operations = {name for name, each in vars(port).items() if inspect.isfunction(each)}
    public = {name for name in operations if not name.startswith("_")}
    assert public
    assert public <= vars(sharded).keys()


def test_a_call_over_a_network_gives_arguments_by_position() -> None:
    """A rule knows the first argument by its position only."""

    def settle(first: object, /, *given: object, **named: object) -> tuple[Any, ...]:
        return (first, *given, named)

    answer = OPERATIONS["answer"]
    arguments = answer.positional(([], 7), {"sender": "me"})
    assert answer.call(settle, arguments) == ([], 7, {"sender": "me"})
