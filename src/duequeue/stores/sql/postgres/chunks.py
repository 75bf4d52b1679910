"""A large result in chunks, as the server sends it, on libpq itself.

psycopg's cursors either wait for all of it or make its rows one by one, which takes twice the time.
"""

from collections.abc import Iterator

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format

from duequeue.stores.sql.commands import Parameters, Row

_ROWS = {ExecStatus.TUPLES_OK, ExecStatus.TUPLES_CHUNK, ExecStatus.SINGLE_TUPLE}


def chunks(
    connection: psycopg.Connection, query: bytes, parameters: Parameters, size: int
) -> Iterator[list[Row]]:
    """Run a query and yield its rows, about so many at a time.

    Until the last of them the connection is good for nothing else, but to be closed.
    """
    statement = psycopg.ClientCursor(connection).mogrify(query, parameters)
    pgconn, transformer = connection.pgconn, Transformer(connection)
    pgconn.send_query_params(statement.encode(), None, result_format=Format.BINARY)
    if psycopg.capabilities.has_stream_chunked():
        pgconn.set_chunked_rows_mode(size)
    else:
        pgconn.set_single_row_mode()
    chunk: list[Row] = []
    while (result := pgconn.get_result()) is not None:
        if result.status not in _ROWS:
            raise error_from_result(result)
        transformer.set_pgresult(result)
        chunk += transformer.load_rows(0, result.ntuples, tuple)
        if len(chunk) >= size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
