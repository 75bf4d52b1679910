"""From a URL to a backend, without contacting anybody."""

import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from duequeue.backends import absolute, backend_for
from duequeue.bulk import bulk_backend_for

SECRET = "hunter2"


@pytest.mark.parametrize("url", ["redis2://x", "oracle://x", "app.db", "", ":memory:", "//x"])
def test_an_unknown_scheme_is_answered_with_the_known_ones(url: str) -> None:
    with pytest.raises(ValueError, match=r"known schemes are: memory:, sqlite:, postgresql:"):
        backend_for(url)


def test_schemes_have_no_case() -> None:
    assert backend_for("MEMORY:x").address == "memory:x"


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///app.db", Path.cwd() / "app.db"),
        ("sqlite:///data/app.db", Path.cwd() / "data/app.db"),
        ("sqlite:////srv/app.db", Path("/srv/app.db")),
        ("sqlite:////srv/my%20app%3F.db", Path("/srv/my app?.db")),
        ("sqlite:////srv/app.db?synchronous=normal", Path("/srv/app.db")),
    ],
)
def test_sqlite_files(url: str, path: Path) -> None:
    assert backend_for(url).address == str(path)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("sqlite:app.db", "three slashes"),
        ("sqlite://app.db", "three slashes"),
        ("sqlite:///", "names no SQLite file"),
        ("sqlite:///:memory:", "memory: for a queue without one"),
        ("sqlite:///app.db?synchronous=off", "synchronous must be one of"),
        (
            "sqlite:///app.db?timeout=5",
            "unknown option 'timeout'; known are: mode, synchronous",
        ),
    ],
)
def test_bad_sqlite_urls(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        backend_for(url)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        (f"postgresql://me:{SECRET}@db.example:6543/orders", "db.example:6543/orders"),
        (f"postgres://me:{SECRET}@db.example/orders", "db.example:5432/orders"),
        (f"postgresql://db.example/orders?password={SECRET}&user=me", "db.example:5432/orders"),
        ("postgresql://me@/orders?host=/run/postgresql", "/run/postgresql:5432/orders"),
        ("postgresql://me@db.example", "db.example:5432/me"),
        ("postgresql://db.example/orders?pool_size=1", "db.example:5432/orders"),
    ],
)
def test_postgres_servers(url: str, address: str) -> None:
    backend = backend_for(url)
    assert backend.address == address
    for shown in (backend, vars(backend), backend.session(), backend.address):
        assert SECRET not in repr(shown)


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "psycopg_async", "asyncpg"])
@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "PostgreSQL"])
def test_the_urls_of_sqlalchemy_are_taken(scheme: str, driver: str) -> None:
    url = f"{scheme}+{driver}://me:{SECRET}@db.example:6543/orders?pool_size=2"
    assert backend_for(url).address == "db.example:6543/orders"
    assert backend_for(url).place == backend_for(url.replace(f"+{driver}", "")).place
    bulk_backend_for(url)


@pytest.mark.parametrize(
    "url",
    [
        "memory:?timer=heap&timer=hashed",
        "sqlite:///app.db?mode=rw&mode=rw",
        "postgresql://db/app?pool_size=3&pool_size=4",
        "mariadb://db/app?pool_size=3&pool_size=4",
        "redis://host/0?durable=fsync&durable=replica",
        "https://host?ssl_ca=a&ssl_ca=b",
    ],
)
def test_an_option_that_comes_twice_is_refused(url: str) -> None:
    name = url.rpartition("&")[2].partition("=")[0]
    with pytest.raises(ValueError, match=f"url has the option '{name}' twice"):
        backend_for(url)


def test_an_option_that_may_be_a_part_of_a_password_is_not_shown() -> None:
    with pytest.raises(ValueError, match="url") as raised:
        backend_for(f"postgresql://bob:x?{SECRET}=1&{SECRET}=2@db/app")
    assert SECRET not in str(raised.value)


def test_another_driver_is_an_unknown_scheme() -> None:
    with pytest.raises(
        ValueError, match=r"postgresql\+pg8000.*known schemes are: memory:, sqlite:"
    ):
        backend_for("postgresql+pg8000://db.example/orders")


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("pool_sise=3", "unknown option 'pool_sise'; did you mean 'pool_size'"),
        ("sslmod=require", "unknown option 'sslmod'; did you mean 'sslmode'"),
        ("poolr=transaction", "unknown option 'poolr'; did you mean 'pooler'"),
        ("connect_timeot=3", "did you mean 'connect_timeout'"),
        ("quux=3", "unknown option 'quux'; known are: alerts, application_name, "),
    ],
)
def test_a_misspelt_postgres_option_is_named(option: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        backend_for(f"postgresql://me:{SECRET}@db.example/orders?{option}")


@pytest.mark.parametrize("option", ["ssl=true", "sslmode=require", "target_session_attrs=any"])
def test_the_options_of_libpq_are_taken(option: str) -> None:
    backend_for(f"postgresql://me@db.example/orders?{option}")


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:12?{SECRET}@db.example/orders",
        f"postgresql://me:12?{SECRET}=3@db.example/orders",
        f"postgresql://me:12?{SECRET}&x=3@db.example/orders",
        f"postgresql://me:{SECRET}%zz@db.example/orders",
        f"postgresql://me:{SECRET}@[::1/orders",
        f"postgresql://me:{SECRET}@db.example/orders?no_such_option=1",
        f"postgresql://me@db.example/orders?password={SECRET}%zz",
        f"postgresql://me:{SECRET}@db.example/orders?pool_size=many",
        f"postgresql://me:{SECRET}@db.example/orders?pool_size=0",
        f"postgresql://me:{SECRET}@db.example/orders?role=king",
        f"postgresql://me:{SECRET}@db.example/orders?pool_size=-1",
    ],
)
def test_bad_postgres_urls_do_not_tell_the_password(url: str) -> None:
    with pytest.raises(ValueError, match=r"url|pool_size") as raised:
        backend_for(url)
    shown = "".join(traceback.format_exception(raised.value))
    assert SECRET not in shown.replace(url, "")  # which is in the source of this very test


def test_a_missing_driver_is_named() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from duequeue import MissingExtra, Queue\n"
        "try:\n    Queue.open('postgresql://localhost/x', 'orders')\n"
        "except MissingExtra as error:\n    print(error)\n"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert "pip install 'duequeue[postgres]'" in finished.stdout.decode()


@pytest.mark.parametrize(
    "url",
    ["sqlite:///my%20app%3F.db", "SQLite:///data/app.db?synchronous=normal", "sqlite:////a.db"],
)
def test_a_file_is_the_same_from_any_folder(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, elsewhere = backend_for(url).address, absolute(url)
    monkeypatch.chdir(tmp_path)
    assert backend_for(elsewhere).address == here
    assert elsewhere.partition("?")[2] == url.partition("?")[2]


def test_a_server_is_the_same_from_any_folder() -> None:
    assert absolute("postgresql://db/app?pool_size=3") == "postgresql://db/app?pool_size=3"


@pytest.mark.parametrize("url", ["sqlite://app.db", "sqlite:///", "sqlite:///:memory:"])
def test_a_file_that_is_not_one_is_no_other_file_from_another_folder(url: str) -> None:
    with pytest.raises(ValueError, match="SQLite file"):
        absolute(url)


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        (
            "memory:",
            "'memory', which other processes cannot reach; use one of: sqlite:, postgresql:",
        ),
        ("ftp://x", "'ftp', which names no store"),
        ("sqlite:///app.db", "absolute path"),
        ("sqlite:////srv/app.db?timeout=5", "unknown option 'timeout'"),
        (f"postgresql://bob:{SECRET[:3]}@{SECRET[3:]}@db/app", "%40, %2F or %3F"),
    ],
)
def test_a_store_for_batches_is_one_that_other_processes_reach(url: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as raised:
        bulk_backend_for(url)
    assert SECRET[3:] not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        (
            f"host=127.0.0.1 port=1 password={SECRET}",
            "^url names no store; the known schemes are: memory:",
        ),
        (f"postgresql://bob:{SECRET[:3]}/{SECRET[3:]}@db/app", "%40, %2F or %3F"),
        (f"postgresql://bob:{SECRET[:3]}@{SECRET[3:]}@db/app", "%40, %2F or %3F"),
        (f"postgresql://bob:{SECRET[:3]}?{SECRET[3:]}@db/app", "%40, %2F or %3F"),
        (f"postgresql://bob:{SECRET}@db:99999/app", "a whole number from 1 to 65535"),
        (f"postgresql://bob:{SECRET}/app", "a port that is not a whole number"),
        (f"postgresql://bob:{SECRET}%zz@db/app", "special characters as %"),
        (f"postgresql://bob:{SECRET}@db/app?poolr=transaction", "did you mean 'pooler'"),
    ],
)
def test_what_is_wrong_with_a_url_is_said_without_its_password(url: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as raised:
        backend_for(url)
    told = "".join(traceback.format_exception(raised.value))
    assert not any(part in told for part in (SECRET, SECRET[:3] + "/", "@" + SECRET[3:]))


@pytest.mark.parametrize(
    "address",
    [
        "bob:x%40y@db:5433/app",
        "db1:1,db2:2/app",
        "db:5433?user=bob@shop",
        "[::1]?user=bob@shop",
        "/app?host=/run/postgresql",
        "%2Frun%2Fpg/app",
    ],
)
def test_addresses_of_servers_are_taken_in_any_form(address: str) -> None:
    assert backend_for(f"postgresql://{address}").address


def test_an_address_is_what_libpq_makes_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("PGHOST", "db"), ("PGPORT", "5999"), ("PGDATABASE", "shop")):
        monkeypatch.setenv(name, value)
    assert backend_for("postgresql://").address == "db:5999/shop"
    assert backend_for("postgresql://other:1/app").address == "other:1/app"


def test_the_case_of_a_scheme_does_not_matter() -> None:
    assert backend_for("PostgreSQL://localhost/orders").place == (
        backend_for("postgresql://localhost/orders").place
    )
