"""How rows get into an archive and survive a crash: they are staged, counted, and moved into place.

    _staging/rows/queue=orders/part-….parquet     being written; discarded after a crash
    _staging/manifest.json                        the rows are complete, and will be moved
    day=2026-03-01/queue=orders/part-….parquet    in place
    day=2026-03-01/_manifest-….json               all rows of a batch are in place

Spark ignores names that begin with an underscore.
"""

from datetime import date
from uuid import uuid4

import msgspec
from pyspark.sql import DataFrame

from duequeue.pipeline.archiving.layout import write_counted
from duequeue.pipeline.folder import Folder
from duequeue.pipeline.history_frames import MANIFESTS, day_folder
from duequeue.port.history_table import DayBounds

STAGING = "_staging"
ROWS = f"{STAGING}/rows"
MANIFEST = f"{STAGING}/manifest.json"


class Manifest(msgspec.Struct, frozen=True):
    """What one batch adds to a day of the archive."""

    day: date
    rows: int
    first_id: int
    last_id: int
    rows_by_queue: dict[str, int]


class Batches:
    """Takes batches into one archive, one at a time."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def recover(self) -> Manifest | None:
        """Finish the batch of an interrupted run if it was sealed; otherwise discard it."""
        if self._folder.has(MANIFEST):
            return self.publish()
        self.discard()
        return None

    def stage(self, rows: DataFrame, bounds: DayBounds) -> dict[str, int]:
        """Write rows, and count the written ones by queue."""
        self.discard()
        return write_counted(rows, bounds, self._folder.of(ROWS))

    def seal(self, manifest: Manifest) -> None:
        """Declare the staged rows complete; from now on they will get into the archive.

        The rows are synchronized first, so that a power failure cannot leave a seal without them.
        """
        self._folder.keep(ROWS)
        content = msgspec.json.format(msgspec.json.encode(manifest))
        self._folder.write(MANIFEST, content)

    def publish(self) -> Manifest:
        """Move the sealed rows into place; after an interruption, move the rest of them."""
        manifest = msgspec.json.decode(self._folder.read(MANIFEST), type=Manifest)
        day = day_folder(manifest.day)
        for queue in self._folder.names(ROWS):
            if queue.startswith("queue="):
                for file in self._folder.names(f"{ROWS}/{queue}"):
                    self._folder.move(f"{ROWS}/{queue}/{file}", f"{day}/{queue}/{file}")
        self._folder.move(MANIFEST, f"{day}/{MANIFESTS}{uuid4().hex}.json")
        self.discard()
        return manifest

    def discard(self) -> None:
        """Discard the staged rows."""
        self._folder.delete(STAGING)
