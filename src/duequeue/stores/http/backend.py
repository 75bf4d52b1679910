"""`http://host:port` and `https://host`, where a DueQueue server listens."""

import secrets

from duequeue.drive.steps import at_once
from duequeue.errors import InvalidType
from duequeue.port.alerts import Alerts, OnAlert
from duequeue.port.examining import Finding
from duequeue.port.history_table import HistoryTable
from duequeue.port.remote import COUNT_TYPES, EXAMINE, KINDS, OPEN, Examination, WakeUpCall
from duequeue.port.store import AsyncSession, Session, Steps, Store
from duequeue.stores.http.address import ServerAddress
from duequeue.stores.http.alerts import WAIT_SECONDS, HttpAlerts
from duequeue.stores.http.session import AsyncHttpSession, HttpSession
from duequeue.stores.http.store import Opened, RemoteCall, http_history, http_store
from duequeue.stores.judging import judge_clock


class HttpBackend:
    """One server; see `port.store.Backend`."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self._address = ServerAddress.from_url(url, token)
        self._sender = secrets.token_hex(8)

    @property
    def address(self) -> str:
        """The URL."""
        return self._address.text

    @property
    def place(self) -> str:
        """The URL."""
        return self.address

    def session(self) -> Session:
        """Use a pool of connections."""
        return HttpSession(self._address)

    def async_session(self) -> AsyncSession:
        """Use a pool of asynchronous connections."""
        return AsyncHttpSession(self._address)

    def borrow(self, connection: object) -> Session:
        """Refuse, because a transaction does not reach over HTTP."""
        raise _no_transactions(connection)

    def borrow_async(self, connection: object) -> AsyncSession:
        """Refuse, because a transaction does not reach over HTTP."""
        raise _no_transactions(connection)

    @at_once
    def migrate(self) -> list[str]:
        """Do nothing, because the server brings its tables up to date itself."""
        return []

    def schema_script(self) -> str:
        """Return an empty script, because the tables are the server's."""
        return ""

    def alerts(self, kind: str, on_alert: OnAlert) -> Alerts:
        """Wait at the server."""
        name, _, type_name = kind.partition("|")
        call = WakeUpCall(name, type_name, self._sender, WAIT_SECONDS)
        return HttpAlerts(self._address, call, on_alert)

    def open_store(
        self, kind: str, sweep_interval: int, *, migrate: bool, history: bool
    ) -> Steps[Store]:
        """Have the server open the store of one kind."""
        name, _, type_name = kind.partition("|")
        opened = Opened(name, type_name, sweep_interval, history, self._sender)
        yield RemoteCall(opened, "open", OPEN, (migrate,))
        return http_store(opened)

    def count_types(self, name: str, most: int) -> Steps[dict[str, int]]:
        """Ask the server."""
        found: dict[str, int]
        found = yield RemoteCall(Opened(name), "count_types", COUNT_TYPES, (name, most))
        return found

    @at_once
    def open_history(self, *, migrate: bool) -> HistoryTable:  # noqa: ARG002 - the port's signature
        """Return the history; the server has it open."""
        return http_history()

    def read_only_session(self) -> Session:
        """Return a session like any other."""
        return self.session()

    def kinds(self) -> Steps[list[str]]:
        """Ask the server for the kinds that the token may see."""
        found: list[str] = yield RemoteCall(Opened(), "kinds", KINDS, ())
        return found

    def examine(self, now: int) -> Steps[list[Finding]]:
        """Let the server examine itself and its store."""
        found: Examination = yield RemoteCall(Opened(), "examine", EXAMINE, (now,))
        clock = judge_clock(found.now - now)._replace(about="clock of the service")
        return [clock, *found.findings]


def _no_transactions(connection: object) -> InvalidType:
    return InvalidType(
        "connection",
        f"{type(connection).__name__} cannot be used, because a transaction does not reach a "
        "server over HTTP; open the queue on the database itself to use `within`",
    )
