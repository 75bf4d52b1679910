"""Jobs on Spark over whole queues, as plain functions and as `duequeue pipeline …`."""

from duequeue.errors import MissingExtra

try:
    from duequeue.pipeline.archiving.job import Archived, archive
    from duequeue.pipeline.delivering.handling import Received
    from duequeue.pipeline.delivering.job import Delivered, ToQueue, deliver
    from duequeue.pipeline.ingesting.frames import Columns
    from duequeue.pipeline.ingesting.job import Ingested, ingest
    from duequeue.pipeline.migrating import Migrated, migrate
    from duequeue.pipeline.progress import Progress
    from duequeue.pipeline.replaying import Replayed, replay
    from duequeue.pipeline.reporting.job import Report, report
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in {"pyarrow", "pyspark"}:
        raise
    raise MissingExtra("Spark is missing: pip install 'duequeue[spark]'") from error

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
