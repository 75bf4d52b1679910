"""Waiting on the main thread without sleeping through signals."""

import threading
from time import monotonic

NOTICE_SIGNALS_EVERY = 0.2


def wait_for(event: threading.Event, seconds: float) -> None:
    """Wait for an event, or for some time to pass.

    The system may hand a signal to any thread. Python answers it on the main thread, but only once
    that runs again, so a wait that the signal did not interrupt would sleep through it.
    """
    if threading.current_thread() is not threading.main_thread():
        event.wait(seconds)
        return
    gives_up_at = monotonic() + seconds
    while (left := gives_up_at - monotonic()) > 0:
        if event.wait(min(left, NOTICE_SIGNALS_EVERY)):
            return
