"""What a bulk operation may ask of its session, beside the ordinary commands."""

from typing import NamedTuple

from pyarrow import RecordBatch


class Load(NamedTuple):
    """Append a batch to the table whose columns it names, all or none.

    The reply is False when a key was there already, and nothing was appended.
    """

    table: str
    rows: RecordBatch
