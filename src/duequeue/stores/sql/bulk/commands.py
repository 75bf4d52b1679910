"""The commands that a bulk operation may give to its session, besides the ordinary ones."""

from typing import NamedTuple

from pyarrow import RecordBatch

from duequeue.stores.sql.commands import Parameters


class Load(NamedTuple):
    """Append a batch, whose columns are named as those of the table, atomically.

    The reply is False, and nothing was appended, if one of the keys was there already.
    """

    table: str
    rows: RecordBatch


class QueryBatch(NamedTuple):
    """A `QueryEach` whose sets of parameters are the rows of a batch."""

    name: str
    parameters: Parameters
    rows: RecordBatch
