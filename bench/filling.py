"""Fill a table of PostgreSQL quickly with millions of rows."""

import time

import psycopg
from psycopg import sql

YEAR = 365 * 24 * 3600.0
PLAIN_INDEXES = """
    SELECT index.relname, pg_get_indexdef(index.oid)
    FROM pg_index INNER JOIN pg_class AS index ON index.oid = indexrelid
    WHERE
        indrelid = CAST(%s AS regclass)
        AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
"""


def fill_table(url: str, table: str, insert: str, messages: int) -> None:
    """Insert the rows, rebuild the indexes afterwards, and vacuum the table.

    The statement gets the number of messages, and an instant in a year from which to count.
    """
    values = {"messages": messages, "after": round((time.time() + YEAR) * 1000)}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET maintenance_work_mem = '1GB'")
        indexes = connection.execute(PLAIN_INDEXES, [table]).fetchall()
        for name, _ in indexes:
            connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
        connection.execute(insert.encode(), values)
        for _, definition in indexes:
            connection.execute(definition.encode())
        connection.execute(sql.SQL("VACUUM ANALYZE {}").format(sql.SQL(table)))
        connection.execute("CHECKPOINT")
