"""Before a job with a checkpoint begins: that and the place of its results are made ready."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from duequeue.pipeline.checkpoint import Checkpoint
from duequeue.pipeline.delivering.results_folder import ResultsFolder
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import Options


@dataclass(frozen=True)
class StartingPoint:
    """Where a job records how far it is, the folder of its results, or their queue."""

    checkpoint: Checkpoint
    folder: ResultsFolder | None
    results: Options | None

    @contextmanager
    def begun(self, reading: Options, *, reset: bool) -> Iterator[None]:
        """Lock the folder during the block; raise if Spark could not go on, or would skip batches.

        Before that, reset the checkpoint if the user wants it.
        """
        self.checkpoint.repair()
        with ExitStack() as held:
            if self.folder is not None:
                held.enter_context(self.folder.locked())
            if reset:
                self._reset(reading)
            self.checkpoint.check()
            if self.folder is not None:
                held.enter_context(self.folder.written_by(self.checkpoint))
            yield

    def _reset(self, reading: Options) -> None:
        """Go on after the last batch that the results have, as the same consumer."""
        known = self.folder and self.folder.consumer()
        if self.folder is not None and known:
            self.checkpoint.adopt(known)
            self.folder.check_owner(self.checkpoint)
        consumer = reading.consumer_id or self.checkpoint.consumer()
        last = self._last_batch()
        sequence = self.checkpoint.sequence(last)
        if sequence is None:
            sequence = _acked(reading, consumer)
        offset = {"consumer": consumer, "queue": reading.kind, "sequence": sequence}
        self.checkpoint.reset(last, offset)

    def _last_batch(self) -> int:
        """Return the last number that Spark would skip, or -1."""
        if self.folder is not None:
            return self.folder.last_batch()
        query = self.checkpoint.query()
        if self.results is None or query is None:
            return -1
        with OpenBulk(self.results) as bulk:
            counts = bulk.run(partial(bulk.store.stream_counts, query))
        return counts.batch if counts else -1


def _acked(reading: Options, consumer: str) -> int:
    """Return the number of the last batch that is acked, or 0."""
    with OpenBulk(reading) as bulk:
        first = bulk.run(partial(bulk.store.first_batch, consumer))
    return first.sequence - 1 if first else 0
