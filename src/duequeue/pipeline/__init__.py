"""Jobs on Spark over whole queues: plain functions, and `duequeue pipeline …`."""

from duequeue.pipeline.archiving import Archived, archive
from duequeue.pipeline.delivering import Delivered, ToQueue, deliver
from duequeue.pipeline.handling import Received
from duequeue.pipeline.ingest_frames import Columns
from duequeue.pipeline.ingesting import Ingested, ingest
from duequeue.pipeline.migrating import Migrated, migrate
from duequeue.pipeline.progress import Progress
from duequeue.pipeline.replaying import Replayed, replay
from duequeue.pipeline.reporting import Report, report

__all__ = [
    "Archived",
    "Columns",
    "Delivered",
    "Ingested",
    "Migrated",
    "Progress",
    "Received",
    "Replayed",
    "Report",
    "ToQueue",
    "archive",
    "deliver",
    "ingest",
    "migrate",
    "replay",
    "report",
]
