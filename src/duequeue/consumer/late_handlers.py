"""Keeps track of handlers on threads that run for too long, and of the threads in their place."""

from time import monotonic


class LateHandlers:
    """The handlers that run, and those among them that have timed out, by the id of their message.

    A thread cannot be ended from outside. So a consumer gives up the message of a late handler and
    starts another thread in place of the one that hangs. It replaces at most as many threads as it
    has; a late handler beyond that keeps its place until it or another late one ends. The caller
    holds the lock of the handover.
    """

    def __init__(self, timeout_seconds: float, threads: int) -> None:
        self._timeout_seconds = timeout_seconds
        self._threads = threads
        self._begun_at: dict[int, float] = {}  # handlers that have not timed out, oldest first
        self._late: dict[int, bool] = {}  # the others, and whether their thread was replaced

    def begin(self, handler: int) -> None:
        """Measure the time of a handler from now on."""
        self._begun_at[handler] = monotonic()

    def end(self, handler: int) -> bool:
        """Forget a handler, and return whether its thread may go on.

        A thread that was replaced takes the place of one that could not be replaced, if any hangs.
        """
        self._begun_at.pop(handler, None)
        if not self._late.pop(handler, False):
            return True
        hanging = next((each for each, replaced in self._late.items() if not replaced), None)
        return hanging is not None and self.replace(hanging)

    def seconds_left(self) -> float:
        """Return how long no handler can time out, not even one that begins now."""
        first = next(iter(self._begun_at.values()), None)
        if first is None:
            return self._timeout_seconds
        return max(0.0, first + self._timeout_seconds - monotonic())

    def take_overdue(self) -> list[int]:
        """Return the handlers whose time is up, and count them as late from now on."""
        latest = monotonic() - self._timeout_seconds
        overdue = [handler for handler, at in self._begun_at.items() if at <= latest]
        for handler in overdue:
            del self._begun_at[handler]
            self._late[handler] = False
        return overdue

    def stop_measuring(self) -> None:
        """Let no more handlers time out; those that are late stay late until they end."""
        self._begun_at.clear()

    def replace(self, handler: int) -> bool:
        """Note that a late handler's thread is replaced; return False if too many are already."""
        if handler not in self._late or sum(self._late.values()) >= self._threads:
            return False
        self._late[handler] = True
        return True

    def is_late(self, handler: int) -> bool:
        """Return whether a handler that has not ended ran into the timeout."""
        return handler in self._late

    @property
    def stalled(self) -> bool:
        """Whether late handlers occupy every thread, so that none can begin."""
        return len(self._late) - sum(self._late.values()) >= self._threads
