"""Ticks inside a caller's transaction."""

import sqlite3
from contextlib import closing
from typing import Any

import psycopg
import pytest

from duequeue.contract.cron_phrases import ONE, after, assert_holds, keys, messages
from duequeue.contract.faces import SyncFace
from duequeue.contract.fixtures import OpenQueue
from duequeue.contract.phrases import MINUTE
from tests.fixtures.connections import connect_mariadb


@pytest.mark.parametrize("face", ["sync"], indirect=True)
@pytest.mark.parametrize("store", ["sqlite", "postgres", "mariadb"], indirect=True)
def test_ticks_in_the_callers_own_transaction(
    store: str, store_url: str, open_queue: OpenQueue
) -> None:
    queue = open_queue()
    with closing(connected(store, store_url)) as connection:
        within = queue.within(connection)
        within.cron.install_tick(ONE, "reports", messages(1))
        with pytest.raises(ValueError, match="transaction"):
            within.cron.install_periodic_tick("reports", MINUTE, 1)
        connection.rollback()
        assert queue.cron.list() == []
        within.cron.install_tick(ONE, "reports", messages(1))
        connection.commit()
    assert_holds(queue, keys(after(1)))


def connected(store: str, url: str) -> Any:
    if store == "postgres":
        return psycopg.connect(url)
    if store == "mariadb":
        return connect_mariadb(SyncFace(), url)
    return sqlite3.connect(url.removeprefix("sqlite:///"))
