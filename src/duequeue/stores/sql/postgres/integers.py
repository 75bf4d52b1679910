"""Integers as bigint, all of them.

psycopg sends an integer as the smallest type that holds it. So a statement counts as another one,
and is prepared once more, whenever an id grows past 32,767 or past 2,147,483,647.
"""

from psycopg.abc import AdaptContext
from psycopg.types.numeric import Int8BinaryDumper


def register_integers(connection: AdaptContext) -> None:
    """Teach a connection of ours to send every integer in one way."""
    connection.adapters.register_dumper(int, Int8BinaryDumper)
