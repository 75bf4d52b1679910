"""A process of its own that keeps a snapshot: Spark ends the one that plans while others read.

Every plan waits for it to start, so it imports no more than the driver.
"""

import json
import os
import sys
from contextlib import closing, suppress
from time import monotonic
from typing import Any

import psycopg

BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_EXPORT = "SELECT pg_export_snapshot()"
_LISTEN = "LISTEN duequeue_snapshot"
# How often to look whether there is still anybody to keep it for, in seconds.
_BEAT = 1.0
# Not every version has all of them.
_BE_PATIENT = """
    SELECT set_config(name, '0', false) FROM pg_settings
    WHERE name IN (
        'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout'
    )
"""


def main() -> None:
    """Keep a snapshot as ordered."""
    order = json.load(sys.stdin)
    try:
        _hold(**order)
    except psycopg.Error as error:
        # Once the snapshot is told of, nobody listens: a server that is gone has let it go, too.
        with suppress(BrokenPipeError):
            _answer(error=str(error))


def _hold(conninfo: str, arguments: dict[str, Any], parts: int, seconds: float, owner: int) -> None:
    ends_at = monotonic() + seconds
    with (
        closing(psycopg.connect(conninfo, **arguments)) as listening,
        closing(psycopg.connect(conninfo, **arguments)) as holding,
    ):
        listening.execute(_BE_PATIENT)
        listening.execute(_LISTEN)
        holding.execute(_BE_PATIENT)
        holding.execute(BEGIN)
        ((snapshot,),) = holding.execute(_EXPORT).fetchall()
        _answer(snapshot=snapshot)
        unread = {f"{snapshot} {number}" for number in range(parts)}
        while unread and _is_running(owner) and (left := ends_at - monotonic()) > 0:
            for told in listening.notifies(timeout=min(left, _BEAT), stop_after=1):
                unread.discard(told.payload)


def _answer(**words: str) -> None:
    print(json.dumps(words), flush=True)  # noqa: T201 - whoever has started it reads that


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it is another user's
    return True


if __name__ == "__main__":
    main()
