"""Where a worker shows its status: on a terminal, or in a log that consists of JSON."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from duequeue.cli.terminal import Terminal
from duequeue.cli.worker.settings import WorkerSettings

logger = logging.getLogger("duequeue.cli")


class Logged(Terminal):
    """Logs what would be printed, so that nothing comes between the records."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__(sys.stderr, quiet=quiet)
        self.live = False

    def print(self, line: str) -> None:
        """Log a line."""
        if not self._quiet:
            logger.info("%s", line)

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Leave all other output as it is."""
        yield


def terminal_of(settings: WorkerSettings) -> Terminal:
    """Return what fits the format of the log."""
    if settings.log_format == "json":
        return Logged(quiet=settings.quiet)
    return Terminal(sys.stderr, quiet=settings.quiet)
