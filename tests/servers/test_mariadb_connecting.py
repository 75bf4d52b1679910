"""How MariaDB is reached: with TLS, which may verify the server, and through a unix socket."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

import pytest

from duequeue import OfferOutcome, StoreError
from duequeue.contract.faces import Face
from duequeue.stores.sql.mariadb.server import MariadbServer
from duequeue.stores.sql.mariadb.settings import MariadbSettings
from tests.fixtures.certificates import self_signed, signed
from tests.fixtures.mariadb import (
    SETTINGS,
    MariaDBServer,
    OwnMariaDBServer,
    connected,
    find_mariadb,
    own_mariadb,
)
from tests.fixtures.servers import server_account

LOGIN = "CREATE OR REPLACE USER careful IDENTIFIED BY 'hunter2' REQUIRE SSL"
LOGINS = "SELECT total_connections FROM information_schema.user_statistics WHERE user = 'careful'"


class Secured(NamedTuple):
    """A server that offers TLS, the authority of its certificate, and another authority."""

    server: OwnMariaDBServer
    authority: Path
    stranger: Path

    def url(self, options: str, authority: Path | None = None) -> str:
        """Return the URL of a user who must use TLS."""
        parts = urlsplit(self.server.create_database())
        with connected(self.server.admin_url) as cursor:
            cursor.execute(LOGIN)
            cursor.execute(f"GRANT ALL ON {parts.path[1:]}.* TO careful")
        host = parts.netloc.rpartition("@")[2]
        query = options if authority is None else f"{options}&ssl_ca={authority}"
        return urlunsplit(parts._replace(netloc=f"careful:hunter2@{host}", query=query))

    def logins(self) -> int:
        """Count how often that user has logged in."""
        with connected(self.server.admin_url) as cursor:
            cursor.execute(LOGINS)
            return sum(row[0] for row in cursor.fetchall())


@pytest.fixture(scope="module")
def secured() -> Iterator[Secured]:
    find_mariadb()
    with tempfile.TemporaryDirectory(prefix="duequeue-tls-") as name:
        folder = Path(name)
        authority, authority_key = self_signed(folder, "authority")
        stranger, _ = self_signed(folder, "stranger")
        certificate, key = signed(folder, "server", authority, authority_key)
        account = server_account()
        for path in (folder, key):
            os.chown(path, account.user, account.group)
        files = {"ssl-ca": authority, "ssl-cert": certificate, "ssl-key": key}
        settings = {option: str(path) for option, path in files.items()}
        with own_mariadb({**SETTINGS, **settings, "userstat": "ON"}) as server:
            yield Secured(server, authority, stranger)


@pytest.mark.parametrize("mode", ["required", "verify_ca", "verify_identity"])
def test_a_server_with_the_certificate_that_is_expected(
    secured: Secured, face: Face, mode: str
) -> None:
    authority = None if mode == "required" else secured.authority
    with face.open(secured.url(f"ssl_mode={mode}", authority), "orders") as queue:
        assert queue.offer("a", 1) is OfferOutcome.CREATED


@pytest.mark.parametrize("mode", ["verify_ca", "verify_identity"])
def test_a_server_with_the_certificate_of_a_stranger_is_refused_at_once(
    secured: Secured, face: Face, mode: str
) -> None:
    url = secured.url(f"ssl_mode={mode}", secured.stranger)
    with pytest.raises(StoreError, match="certificate verify failed") as raised:
        face.open(url, "orders")
    assert type(raised.value) is StoreError


def test_a_server_without_tls_is_refused_at_once(mariadb_url: str, face: Face) -> None:
    with pytest.raises(StoreError, match=r"SSL is required|demands TLS") as raised:
        face.open(f"{mariadb_url}?ssl_mode=required", "orders")
    assert type(raised.value) is StoreError


def test_a_probe_gives_no_login_to_a_stranger(secured: Secured) -> None:
    """The watchdog connects too, to find out whether a server still answers."""
    url = secured.url("ssl_mode=verify_ca")  # another one would take the rights from this one
    trusted, strange = (
        MariadbServer(MariadbSettings.from_url(f"{url}&ssl_ca={authority}"))
        for authority in (secured.authority, secured.stranger)
    )
    assert trusted.answers(5)
    before = secured.logins()
    assert before > 0
    assert strange.answers(5)
    assert secured.logins() == before


def test_a_unix_socket(mariadb_server: MariaDBServer, mariadb_url: str, face: Face) -> None:
    if not isinstance(mariadb_server, OwnMariaDBServer):
        pytest.skip("only the tests' own server is known to be on this machine")
    parts = urlsplit(mariadb_url)
    login = parts.netloc.rpartition("@")[0]
    query = f"unix_socket={mariadb_server.socket}"
    url = urlunsplit(parts._replace(netloc=f"{login}@", query=query))
    with face.open(url, "orders") as queue:
        assert queue.offer("a", 1) is OfferOutcome.CREATED
    with face.open(mariadb_url, "orders") as queue:
        assert queue.contains("a")
