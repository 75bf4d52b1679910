"""Rounds on MariaDB."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from duequeue import Queue
from tests.fire.ground import Ground
from tests.fire.proxy import Proxy
from tests.fixtures.mariadb import SETTINGS, OwnMariaDBServer, connected, own_mariadb

# An actor that is alone on its queue has other keys, because it expects every message.
HOLD = """
    SELECT 1 FROM duequeue_message WHERE `key` LIKE 'k%' OR `key` LIKE 'beat/%'
    FOR UPDATE SKIP LOCKED
"""


class MariadbGround(Ground):
    """A server of our own, behind a network of our own."""

    has_network = True

    def __init__(self, server: OwnMariaDBServer, proxy: Proxy) -> None:
        self._server = server
        self._proxy = proxy
        self._url = ""

    def fresh_url(self) -> str:
        self._url = self._server.create_database()
        Queue.open(self._url, "the first").close()
        return self._proxy.through(self._url)

    @property
    def proxy(self) -> Proxy:
        return self._proxy

    def crash(self) -> None:
        self._server.restart("immediate")

    @contextmanager
    def hold(self) -> Iterator[None]:
        with connected(self._url) as cursor:
            cursor.execute("BEGIN")
            cursor.execute(HOLD)
            yield
            cursor.execute("ROLLBACK")


class AlertedGround(MariadbGround):
    """The same, where processes wake each other through a Redis, behind a network of its own."""

    def __init__(self, server: OwnMariaDBServer, proxy: Proxy, alerts: Ground) -> None:
        super().__init__(server, proxy)
        self._alerts = alerts

    def fresh_url(self) -> str:
        return f"{super().fresh_url()}?alerts={quote(self._alerts.fresh_url(), safe='')}"

    @property
    def alerts(self) -> Ground:
        return self._alerts


@contextmanager
def mariadb_ground(folder: Path) -> Iterator[Ground]:
    with own_mariadb(SETTINGS) as server, closing(Proxy(server.admin_url)) as proxy:
        yield MariadbGround(server, proxy)
