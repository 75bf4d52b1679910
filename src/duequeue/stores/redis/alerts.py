"""One queue on the mailbox that its process shares; see `port.alerts.Alerts`."""

from contextlib import AbstractContextManager
from functools import partial

from duequeue.port.alerts import Answered, OnAlert
from duequeue.stores.mailbox import MailboxAlerts
from duequeue.stores.redis.mailbox import IN_OUR_PLACE, ListenersWire, shared_mailboxes
from duequeue.stores.redis_client.settings import RedisSettings


class RedisAlerts(MailboxAlerts):
    """Wakes the processes that wait on the same queue, one for each message."""

    def __init__(self, settings: RedisSettings, kind: str, on_alert: OnAlert) -> None:
        self._mailbox = shared_mailboxes.get(settings.place)
        wire = ListenersWire(settings, self._mailbox.waits)
        super().__init__(wire, kind, on_alert, self._mailbox)
        self.waiting = self._wait

    def sender(self) -> str:
        """Let every offer wake somebody in its own script."""
        return self._mailbox.sender(self._kind)

    def notify(self, alert: int | Answered) -> None:
        """Wake one process soon; the script that answers wakes the others itself."""
        if not isinstance(alert, Answered):
            super().notify(alert)

    def _wait(self) -> AbstractContextManager[None]:
        """Return a block in which a poll waits, so offers of this process wake no other one."""
        pass_on = partial(self._mailbox.note, self._wire, self._kind, IN_OUR_PLACE)
        return self._mailbox.waits.block(self._kind, pass_on)
