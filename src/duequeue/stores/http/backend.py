"""`http://host:port` and `https://host`, where a DueQueue server listens."""

import secrets

from duequeue.drive.steps import at_once
from duequeue.port.alerts import Alerts, OnAlert
from duequeue.port.examining import Finding, judge_clock
from duequeue.port.history_table import HistoryTable
from duequeue.port.remote import COUNT_TYPES, EXAMINE, KINDS, OPEN, Examination, WakeUpCall
from duequeue.port.store import AsyncSession, Backend, Session, Steps, Store
from duequeue.stores.http.address import ServerAddress
from duequeue.stores.http.alerts import WAIT_SECONDS, HttpAlerts
from duequeue.stores.http.session import AsyncHttpSession, HttpSession
from duequeue.stores.http.store import RemoteCall, RemoteQueue, http_history, http_store


class HttpBackend(Backend):
    """One server; see `port.store.Backend`."""

    no_transactions = (
        "because a transaction does not reach a server over HTTP; open the queue on the database "
        "itself to use `within`"
    )

    def __init__(self, url: str, token: str | None = None) -> None:
        self._address = ServerAddress.from_url(url, token)
        self._sender = secrets.token_hex(8)

    @property
    def address(self) -> str:
        """The URL."""
        return self._address.text

    def session(self) -> Session:
        """Use a pool of connections."""
        return HttpSession(self._address)

    def async_session(self) -> AsyncSession:
        """Use a pool of asynchronous connections."""
        return AsyncHttpSession(self._address)

    def alerts(self, session: object, kind: str, on_alert: OnAlert) -> Alerts:  # noqa: ARG002 - its requests go apart
        """Wait at the server."""
        name, _, type_name = kind.partition("|")
        call = WakeUpCall(name, type_name, self._sender, WAIT_SECONDS)
        return HttpAlerts(self._address, call, on_alert)

    def open_store(
        self, kind: str, sweep_interval: int, *, migrate: bool, history: bool
    ) -> Steps[Store]:
        """Have the server open the store of one kind."""
        name, _, type_name = kind.partition("|")
        opened = RemoteQueue(name, type_name, sweep_interval, history, self._sender)
        yield RemoteCall(opened, "open", OPEN, (migrate,))
        return http_store(opened)

    def count_types(self, name: str, most: int) -> Steps[dict[str, int]]:
        """Ask the server."""
        found: dict[str, int]
        found = yield RemoteCall(RemoteQueue(name), "count_types", COUNT_TYPES, (name, most))
        return found

    @at_once
    def open_history(self, *, migrate: bool) -> HistoryTable:  # noqa: ARG002 - the port's signature
        """Return the history; the server has it open."""
        return http_history()

    def kinds(self) -> Steps[list[str]]:
        """Ask the server for the kinds that the token may see."""
        found: list[str] = yield RemoteCall(RemoteQueue(), "kinds", KINDS, ())
        return found

    def examine(self, now: int) -> Steps[list[Finding]]:
        """Let the server examine itself and its store."""
        found: Examination = yield RemoteCall(RemoteQueue(), "examine", EXAMINE, (now,))
        clock = judge_clock(found.now - now)._replace(about="clock of the service")
        return [clock, *found.findings]
