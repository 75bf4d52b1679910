"""A large result in chunks as the server sends it, read without psycopg's cursors.

A cursor either waits for the whole result or makes its rows one by one, which takes a third longer.
"""

from collections.abc import Iterator

import psycopg
from psycopg import generators
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format

from duequeue.stores.sql.commands import Parameters, Row

_ROWS = {ExecStatus.TUPLES_OK, ExecStatus.TUPLES_CHUNK, ExecStatus.SINGLE_TUPLE}


def chunks(
    connection: psycopg.Connection, query: bytes, parameters: Parameters, size: int
) -> Iterator[list[Row]]:
    """Run a query and yield its rows, `size` at a time.

    Until the last of them, the connection can do nothing else but be closed.
    """
    statement = psycopg.ClientCursor(connection).mogrify(query, parameters)
    pgconn, transformer = connection.pgconn, Transformer(connection)
    pgconn.send_query_params(statement.encode(), None, result_format=Format.BINARY)
    if psycopg.capabilities.has_stream_chunked():
        pgconn.set_chunked_rows_mode(size)
    else:
        pgconn.set_single_row_mode()
    connection.wait(generators.send(pgconn))
    rows: list[Row] = []
    first = True
    while (result := connection.wait(generators.fetch(pgconn))) is not None:
        if result.status not in _ROWS:
            raise error_from_result(result)
        transformer.set_pgresult(result, set_loaders=first)
        first = False
        rows += transformer.load_rows(0, result.ntuples, tuple)
        result.clear()
        if len(rows) >= size:
            yield rows
            rows = []
    if rows:
        yield rows
