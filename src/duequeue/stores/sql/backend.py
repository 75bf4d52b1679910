"""What the backends of all SQL databases have in common."""

from abc import abstractmethod
from typing import Any, ClassVar

from duequeue.port.alerts import Alerts, OnAlert
from duequeue.port.store import Backend, Steps, Store
from duequeue.stores.mailbox import MailboxAlerts, Wire
from duequeue.stores.sql import opening
from duequeue.stores.sql.history_table import SqlHistoryTable
from duequeue.stores.sql.migrations import schema_script
from duequeue.stores.sql.store import SqlStore


class SqlBackend(Backend):
    """Opens the tables of a dialect; see `port.store.Backend`."""

    dialect: ClassVar[str]
    # On a server, how wake-ups travel: by its own means, or through Redis if the URL names one.
    _wire: Wire[Any]

    @abstractmethod
    def borrow_session(self, connection: object, session: Any) -> Any:
        """Return a session inside a caller's transaction, for that of the queue."""

    def borrow(self, connection: object, session: Any, store: Any) -> tuple[Any, Store]:
        """Use a caller's connection, if it leads to the same database as the queue's session."""
        return self.borrow_session(connection, session), store.borrowed()

    def migrate(self) -> Steps[list[str]]:
        """Bring the tables up to date, and return the names of the applied migrations."""
        return opening.migrate(self.dialect)

    def schema_script(self) -> str:
        """Return the schema as a script."""
        return schema_script(self.dialect)

    def alerts(self, session: Any, kind: str, on_alert: OnAlert) -> Alerts:  # noqa: ARG002 - only a file needs it
        """Join the mailbox that this process shares."""
        return MailboxAlerts(self._wire, kind, on_alert)

    def open_store(
        self, kind: str, sweep_interval: int, *, migrate: bool, history: bool
    ) -> Steps[SqlStore]:
        """Open the store of one kind."""
        return opening.open_store(
            self.dialect, self.place, kind, sweep_interval, migrate=migrate, history=history
        )

    def count_types(self, name: str, most: int) -> Steps[dict[str, int]]:
        """Ask the table of kinds."""
        return opening.count_types(name, most, may_look=True)

    def open_history(self, *, migrate: bool) -> Steps[SqlHistoryTable]:
        """Open the history of all kinds."""
        return opening.open_history(self.dialect, migrate=migrate)

    def kinds(self) -> Steps[list[str]]:
        """Look the kinds up, unless there are no tables."""
        return opening.list_kinds()
