"""Jobs on Spark over whole queues: plain functions, and `duequeue pipeline …`."""

from duequeue.pipeline.archiving import Archived, archive
from duequeue.pipeline.progress import Progress
from duequeue.pipeline.reporting import Report, report

__all__ = ["Archived", "Progress", "Report", "archive", "report"]
