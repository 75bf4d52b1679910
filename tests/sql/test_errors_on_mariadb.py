"""Which errors of MariaDB and MySQL are tried again: those that may pass."""

import errno
import traceback
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import asyncmy.errors
import pymysql
import pytest

from duequeue import ManualClock, SchemaError, StoreError, StoreUnavailable
from duequeue.contract.faces import Face, QueueFace
from duequeue.stores.sql.mariadb.errors import leaves_it_usable, translate
from duequeue.stores.sql.mariadb.settings import Host, HostAddress
from tests.fixtures.mariadb import MariaDBServer, connected

ADDRESS = HostAddress((Host("db.example", 3307),), None, "shop")

TRANSIENT = {
    0: "a connection that the driver closed",
    1020: "a row changed since the snapshot",
    1040: "too many connections",
    1047: "a node that is not ready",
    1053: "the server shuts down",
    1158: "a packet that could not be read",
    1180: "an error during COMMIT",
    1203: "too many connections of a user",
    1205: "a lock was not available in time",
    1213: "a deadlock",
    1226: "a resource of the user is used up",
    1317: "interrupted",
    1526: "no partition for a row",
    1792: "a transaction that only reads",
    1836: "a server that only reads",
    1927: "the connection was killed",
    1969: "a statement took too long",
    2002: "no socket",
    2003: "no connection",
    2006: "the server has gone away",
    2013: "the connection was lost",
    2055: "the connection was lost during a read",
    3024: "a statement took too long on MySQL",
    3572: "a lock was not available at once",
    4031: "an idle connection was ended",
}
PERMANENT = {
    1021: "the disk is full",
    1044: "the database is not for this user",
    1045: "a wrong password",
    1049: "no such database",
    1054: "no such column",
    1062: "a duplicate key",
    1064: "a syntax error",
    1114: "the table is full",
    1142: "a command is not for this user",
    1153: "a packet that is too large",
    1290: "an option forbids the statement",
    1364: "a column without a default",
    1406: "a text that is too long",
    1644: "a signal of the user's",
    1665: "a binary log of statements",
    4025: "a constraint",
    4151: "a locked account",
}
FAMILIES = [pymysql.err.OperationalError, asyncmy.errors.OperationalError]


@pytest.mark.parametrize("family", FAMILIES, ids=["PyMySQL", "asyncmy"])
@pytest.mark.parametrize("number", TRANSIENT, ids=TRANSIENT.values())
def test_errors_that_may_pass(family: type[Exception], number: int) -> None:
    assert type(translate(family(number, "words"), ADDRESS)) is StoreUnavailable


@pytest.mark.parametrize("family", FAMILIES, ids=["PyMySQL", "asyncmy"])
@pytest.mark.parametrize("number", PERMANENT, ids=PERMANENT.values())
def test_errors_that_stay(family: type[Exception], number: int) -> None:
    assert type(translate(family(number, "words"), ADDRESS)) is StoreError


@pytest.mark.parametrize(
    ("error", "may_pass"),
    [
        (pymysql.err.OperationalError(1290, "running with the --read-only option"), True),
        (pymysql.err.OperationalError(1290, "running with --secure-file-priv"), False),
        (pymysql.err.OperationalError(2003, "[Errno 111] Connection refused"), True),
        (pymysql.err.OperationalError(2003, "[Errno -3] Temporary failure in name"), True),
        (pymysql.err.OperationalError(2003, "[Errno -2] Name or service not known"), False),
        (pymysql.err.InterfaceError(0, ""), True),
        (pymysql.err.ProgrammingError("Cursor closed"), False),
        (OSError(errno.EMFILE, "Too many open files"), True),
        (ConnectionResetError(), True),
    ],
    ids=repr,
)
def test_errors_whose_words_or_class_decide(error: Exception, *, may_pass: bool) -> None:
    assert type(translate(error, ADDRESS)) is (StoreUnavailable if may_pass else StoreError)


def test_missing_tables_say_what_to_do() -> None:
    gone = pymysql.err.ProgrammingError(1146, "Table 'shop.duequeue_message' doesn't exist")
    assert type(translate(gone, ADDRESS)) is SchemaError
    others = pymysql.err.ProgrammingError(1146, "Table 'shop.orders' doesn't exist")
    assert type(translate(others, ADDRESS)) is StoreError


@pytest.mark.parametrize(
    ("number", "advice"),
    [(1153, "raise max_allowed_packet"), (1665, "set binlog_format"), (1205, "has locked")],
)
def test_an_error_names_the_server_and_the_way_out(number: int, advice: str) -> None:
    said = str(translate(pymysql.err.OperationalError(number, "words"), ADDRESS))
    assert said.startswith("MariaDB at db.example:3307/shop: ")
    assert advice in said
    assert said.endswith(f"words ({number})")


@pytest.mark.parametrize("number", [1205, 1213, 1062, 1317, 1969])
def test_a_connection_is_kept_after_an_error_of_a_statement(number: int) -> None:
    assert leaves_it_usable(pymysql.err.OperationalError(number, "words"))


@pytest.mark.parametrize("number", [0, 1047, 1053, 1290, 1836, 1927, 2006, 2013])
def test_a_connection_that_is_lost_or_refuses_to_write_is_not_kept(number: int) -> None:
    assert not leaves_it_usable(asyncmy.errors.OperationalError(number, "words"))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError(), OSError()], ids=repr)
def test_a_connection_is_not_kept_after_an_error_from_outside(error: BaseException) -> None:
    assert not leaves_it_usable(error)


@pytest.fixture
def users(mariadb_server: MariaDBServer) -> Iterator[None]:
    """One user who may not log in, and one who may not enter the database."""
    with connected(mariadb_server.admin_url) as cursor:
        cursor.execute("CREATE USER locked_out IDENTIFIED BY 'hunter2' ACCOUNT LOCK")
        cursor.execute("CREATE USER outsider IDENTIFIED BY 'hunter2'")
        yield
        cursor.execute("DROP USER locked_out, outsider")


@pytest.mark.usefixtures("users")
@pytest.mark.parametrize(
    ("login", "database", "reason"),
    [
        ("tester:wrong-one", None, "Access denied for user 'tester'"),
        ("nobody-we-know:hunter2", None, "Access denied for user 'nobody-we-know'"),
        ("locked_out:hunter2", None, "Access denied, this account is locked"),
        ("outsider:hunter2", None, "Access denied for user 'outsider'@'.*' to database"),
        (None, "/no-such-database", "Unknown database 'no-such-database'"),
    ],
)
def test_a_login_that_is_refused_is_not_tried_again(
    mariadb_url: str, face: Face, login: str | None, database: str | None, reason: str
) -> None:
    parts = urlsplit(mariadb_url)
    given, _, host = parts.netloc.rpartition("@")
    url = parts._replace(netloc=f"{login or given}@{host}", path=database or parts.path)
    with pytest.raises(StoreError, match=reason) as raised:
        face.open(urlunsplit(url), "orders")
    assert type(raised.value) is StoreError
    assert host in str(raised.value)
    password = (login or given).partition(":")[2]
    assert password not in "".join(traceback.format_exception(raised.value))


REFUSALS = {
    "a constraint": """
        ALTER TABLE duequeue_message ADD CONSTRAINT enough CHECK (`key` <> 'refused')
    """,
    "a trigger": """
        CREATE TRIGGER refuse BEFORE INSERT ON duequeue_message FOR EACH ROW
        IF NEW.`key` = 'refused' THEN
            SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'enough';
        END IF
    """,
}


def offer_and_drop(queue: QueueFace, key: str) -> None:
    queue.offer(key, 1)
    queue.drop(key)


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_a_check_of_the_users_own_is_not_tried_again(
    mariadb_url: str, face: Face, clock: ManualClock, refusal: str
) -> None:
    with face.open(mariadb_url, "orders", clock=clock) as queue:
        with connected(mariadb_url) as cursor:
            cursor.execute(refusal)
        with pytest.raises(StoreError, match="enough") as raised:
            offer_and_drop(queue, "refused")
        assert type(raised.value) is StoreError
        offer_and_drop(queue, "welcome")
