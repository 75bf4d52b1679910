"""Whether the process can open files, each connection being one.

If it cannot, the event loop closes new connections without a word.
"""

import errno
import logging
import os
import resource

logger = logging.getLogger("duequeue.server")


class OpenFiles:
    """Logs when the process runs out of files, and when it has some again."""

    def __init__(self) -> None:
        self._are_out = False

    def look(self) -> None:
        """Try to open a file."""
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            if error.errno in {errno.EMFILE, errno.ENFILE} and not self._are_out:
                self._are_out = True
                most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
                words = "no file can be opened, so connections are lost: %s (ulimit -n is %d)"
                logger.error(words, error.strerror, most)  # noqa: TRY400 - the place is known
            return
        if self._are_out:
            self._are_out = False
            logger.warning("files can be opened again")
