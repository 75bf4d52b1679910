"""One queue on the lines that its process shares; see `port.alerts.Alerts`."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial

from duequeue.port.alerts import OnAlert
from duequeue.stores.redis.mailbox import shared_lines
from duequeue.stores.redis_client.settings import RedisSettings


class RedisAlerts:
    """Wakes the processes that wait on the same queue, one for each message."""

    def __init__(self, settings: RedisSettings, kind: str, on_alert: OnAlert) -> None:
        self._settings = settings
        self._kind = kind
        self._on_alert = on_alert
        self._lines = shared_lines.get(settings.place)
        self._lines.add(kind, on_alert)

    def sender(self) -> str:
        """Let every offer wake somebody in its own script."""
        return self._lines.sender(self._kind)

    def notify(self, due_at: int) -> None:
        """Wake one process soon."""
        self._lines.notify(self._settings, self._kind, due_at)

    def notify_answered(self, keys: Sequence[str]) -> None:
        """Do nothing, because the script that answers wakes the others."""

    def listen_for_answers(self, seconds: float) -> None:  # noqa: ARG002 - until the queue is closed
        """Keep the line open on which this process is woken for responses."""
        self._lines.listen_for_answers(self._settings, self._kind)

    def waiting(self) -> AbstractContextManager[None]:
        """Return a block in which a poll waits, so offers of this process wake no other one."""
        pass_on = partial(self._lines.pass_on, self._settings, self._kind)
        return self._lines.waits.block(self._kind, pass_on)

    def listen(self, seconds: float) -> None:  # noqa: ARG002 - until the queue is closed
        """Keep the line open on which this process is woken."""
        self._lines.listen(self._settings, self._kind)

    def close(self) -> None:
        """Leave the shared lines."""
        self._lines.remove(self._settings, self._kind, self._on_alert)
