"""The data source that Spark calls `duequeue`."""

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from duequeue.errors import InvalidArgument
from duequeue.spark.batch_reader import BatchReader
from duequeue.spark.batch_writer import BatchWriter
from duequeue.spark.open_bulk import FIRST_CONTACT, OpenBulk
from duequeue.spark.options import Options, parse
from duequeue.spark.read_rows import check_schema, full_schema, schema_text
from duequeue.spark.stream_reader import StreamReader
from duequeue.spark.stream_writer import StreamWriter
from duequeue.spark.written_rows import check_columns


class DueQueueSource(DataSource):
    """Queues as tables and streams: `spark.read|readStream|write|writeStream`."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(…)`."""
        return "duequeue"

    def schema(self) -> StructType | str:
        """Return every column; users may give a schema with fewer."""
        options = parse(self.options)
        # Only Spark itself can parse the text of a type.
        return schema_text(options) if options.payload_schema else full_schema(options)

    def reader(self, schema: StructType) -> BatchReader:
        """Return the reader of a snapshot."""
        options = parse(self.options)
        check_schema(schema, options)
        return BatchReader(options, schema)

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream, which delivers micro-batches."""
        options = parse(self.options)
        check_schema(schema, options, leased=True)
        return StreamReader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:  # noqa: FBT001 - Spark's signature
        """Return the writer that offers a DataFrame; raise if the server cannot be reached."""
        options = self._checked(schema, overwrite=overwrite)
        if options.run_id is None:  # otherwise `offer` has reached it already
            OpenBulk(options, FIRST_CONTACT).close()
        return BatchWriter(options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: FBT001, N802 - Spark's signature
        """Return the writer that offers each micro-batch of a stream exactly once."""
        return StreamWriter(self._checked(schema, overwrite=overwrite))

    def _checked(self, schema: StructType, *, overwrite: bool) -> Options:
        if overwrite:
            raise InvalidArgument(
                "mode",
                text="mode('overwrite') would empty the queue: use mode('append'), "
                "and queue.drop_all(…) first if that is what you want",
            )
        options = parse(self.options)
        check_columns(schema, options)
        return options
