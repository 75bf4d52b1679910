"""How a push process describes errors that do not end it."""

import traceback
from pathlib import Path

from duequeue.errors import DueQueueError, InvalidArgument, InvalidType
from duequeue.process.contact import one_line


def words_about(error: BaseException) -> str:
    """Return the text of our own error, or the type of another one and where it was raised.

    The text of an unexpected error is left out, because it may hold a payload or a secret.
    """
    refused = isinstance(error, InvalidArgument | InvalidType)  # no user is there to correct it
    if isinstance(error, DueQueueError) and not refused:
        return one_line(error)
    *_, frame = traceback.extract_tb(error.__traceback__)
    return f"unexpected {type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"
