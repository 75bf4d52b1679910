"""What a bulk operation may ask of its session, beside the ordinary commands."""

from typing import NamedTuple

from pyarrow import RecordBatch

from duequeue.stores.sql.commands import Parameters


class Load(NamedTuple):
    """Append a batch to the table whose columns it names, all or none.

    The reply is False when a key was there already, and nothing was appended.
    """

    table: str
    rows: RecordBatch


class QueryBatch(NamedTuple):
    """A `QueryEach` whose sets of parameters are the rows of a batch."""

    name: str
    parameters: Parameters
    rows: RecordBatch
