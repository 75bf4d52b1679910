"""Jobs on Spark over whole queues: plain functions, and `duequeue pipeline …`."""

from duequeue.pipeline.ingest import Ingested, ingest
from duequeue.pipeline.ingest_frames import Columns

__all__ = ["Columns", "Ingested", "ingest"]
