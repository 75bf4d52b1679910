"""What a worker says to what it cannot work with, and what it never says."""

import sys
from signal import SIGTERM
from urllib.parse import urlsplit

import pytest

import tests.cli.handlers  # noqa: F401 - looked up by its name
from duequeue import Queue
from duequeue.cli.handler_path import load
from tests.cli.command import Worker
from tests.cli.conftest import DueQueue
from tests.fixtures.postgres import PostgresServer

HERE = "tests.cli.handlers"


@pytest.mark.parametrize(
    ("handler", "complaint"),
    [
        (
            "tests.cli.wrong_signatures:none",
            "handler none must accept one argument, the delivery, but it",
        ),
        ("tests.cli.wrong_signatures:two", "the delivery, but it takes delivery, total"),
        ("tests.cli.command", "'tests.cli.command' has no function that is decorated with"),
        (f"{HERE}:", "module:function"),
        ("no_such_module:charge", "there is no module 'no_such_module'"),
        (f"{HERE}.deeper:charge", f"there is no module '{HERE}.deeper'"),
        (f"{HERE}:charge", f"module '{HERE}' has no 'charge'"),
        (f"{HERE}:nothing_to_call", "is not a function, but of type int"),
        ("tests.cli.broken:charge", "module 'tests.cli.broken' cannot be imported"),
    ],
)
@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_handler_that_is_not_there(
    bare: DueQueue, handler: str, complaint: str, processes: str
) -> None:
    ran = bare("worker", handler, "--url=memory:", "--queue=orders", f"--processes={processes}")
    assert (ran.status, ran.out) == (1, "")
    assert complaint in ran.err.splitlines()[-1]
    assert ("LookupError: the settings are missing" in ran.err) == ("broken" in handler)


@pytest.mark.parametrize(
    ("argument", "complaint"),
    [
        ("--concurrency=0", "concurrency"),
        ("--concurrency=-1 --processes=2", "concurrency"),
        ("--batch=0", "batch"),
        ("--lease=0", "lease"),
        ("--poll-interval=-1", "poll_interval"),
        ("--max-attempts=0", "max_attempts"),
        ("--processes=0", "processes"),
        ("--url=cassandra://host", "cassandra"),
    ],
)
def test_an_argument_that_makes_no_sense(bare: DueQueue, argument: str, complaint: str) -> None:
    ran = bare("worker", f"{HERE}:tell", "--url=memory:", "--queue=orders", *argument.split())
    assert ran.status == 1
    assert complaint in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("argument", ["--lease=soon", "--codec=xml", "--concurrency=x"])
def test_an_argument_that_cannot_be_read(bare: DueQueue, argument: str) -> None:
    ran = bare("worker", f"{HERE}:tell", "--url=memory:", "--queue=orders", argument)
    assert ran.status == 2
    assert argument.partition("=")[0] in ran.err


def test_a_url_that_is_given_as_a_queue_is_not_printed(bare: DueQueue) -> None:
    words = ("--url=memory:", "--queue=postgresql://bob:hunter2@db/app")
    ran = bare("worker", f"{HERE}:tell", *words)
    assert ran.status == 1
    assert "--url" in ran.err
    assert "hunter2" not in ran.err + ran.out


def test_a_decorated_handler_stays_decorated() -> None:
    handlers = sys.modules[HERE]
    assert load(f"{HERE}:decorated") is handlers.decorated
    assert load(f"{HERE}:bound") is handlers.decorated


def test_a_url_must_come_from_somewhere(bare: DueQueue) -> None:
    ran = bare("worker", f"{HERE}:tell", "--queue=orders")
    assert ran.status == 1
    assert "--url" in ran.err


def test_a_function_without_a_queue_needs_one(bare: DueQueue) -> None:
    ran = bare("worker", f"{HERE}:tell", "--url=memory:")
    assert ran.status == 1
    assert f"{HERE}:tell belongs to no queue: pass --queue" in ran.err


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_password_is_not_printed(
    postgres_server: PostgresServer, ready_database: str, processes: str
) -> None:
    with Queue[int].open(ready_database, "orders") as queue:
        queue.offer("a", 1)
        with Worker("tell", ready_database, "--processes", processes) as worker:
            worker.await_lines("handled a")
            worker.send(SIGTERM)
            status, printed = worker.end()
    assert status == 0, printed
    assert "orders at " in printed
    assert postgres_server.password not in printed


def test_a_wrong_password_is_not_printed_either(bare: DueQueue, ready_database: str) -> None:
    password = urlsplit(ready_database).password or ""
    ran = bare("migrate", "--url", ready_database.replace(password, "wrong-secret"))
    assert ran.status == 1
    assert "wrong-secret" not in ran.out + ran.err


def test_a_password_in_the_wrong_place_is_not_repeated(bare: DueQueue) -> None:
    url = "postgresql://me:secret@host/app"
    ran = bare("worker", f"{HERE}:tell", url, "--queue=orders", "--url=memory:")
    assert ran.status == 2
    assert "postgresql://me:***@host/app" in ran.err
    assert "secret" not in ran.err
