"""What the backends of all SQL databases have in common."""

from abc import ABC, abstractmethod
from typing import ClassVar

from duequeue.port.store import Steps
from duequeue.stores.sql import opening
from duequeue.stores.sql.history_table import SqlHistoryTable
from duequeue.stores.sql.migrations import schema_script
from duequeue.stores.sql.store import SqlStore


class SqlBackend(ABC):
    """Opens the tables of a dialect; see `port.store.Backend`."""

    dialect: ClassVar[str]

    @property
    @abstractmethod
    def place(self) -> str:
        """A name that is equal for all backends of this process that use the same tables."""

    def migrate(self) -> Steps[list[str]]:
        """Bring the tables up to date, and return the names of the applied migrations."""
        return opening.migrate(self.dialect)

    def schema_script(self) -> str:
        """Return the schema as a script."""
        return schema_script(self.dialect)

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
