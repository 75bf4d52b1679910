"""Jobs on Spark over whole queues: plain functions, and `duequeue pipeline …`."""

from duequeue.pipeline.archiving import Archived, archive
from duequeue.pipeline.ingest_frames import Columns
from duequeue.pipeline.ingesting import Ingested, ingest
from duequeue.pipeline.progress import Progress
from duequeue.pipeline.reporting import Report, report

__all__ = ["Archived", "Columns", "Ingested", "Progress", "Report", "archive", "ingest", "report"]
