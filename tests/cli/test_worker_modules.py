"""`duequeue worker` with decorated handlers, which bring their own queues and options."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from signal import SIGTERM
from typing import Any

import pytest

from duequeue import Queue, State
from duequeue.contract.phrases import MINUTE
from duequeue.contract.stage import until
from tests.cli.command import Worker
from tests.cli.conftest import DueQueue
from tests.cli.shop import Order

SHOP = "tests.cli.shop"


@pytest.fixture
def typed_orders(url: str) -> Iterator[Queue[Order]]:
    """The typed queue that the handlers' module opens too."""
    with Queue.open(url, "typed-orders", codec=Order) as queue:
        yield queue


def stop(worker: Worker) -> str:
    worker.send(SIGTERM)
    status, printed = worker.end()
    assert status == 0, printed
    return printed


def test_a_decorated_handler_brings_its_queue_its_codec_and_its_options(
    url: str, typed_orders: Queue[Order]
) -> None:
    typed_orders.offer("a", Order(40))
    typed_orders.offer("b", Order(0))
    with Worker(f"{SHOP}:charge", None, SHOP_URL=url) as worker:
        worker.await_lines("charged a 40")
        until(lambda: typed_orders.stats().buried == 1)
        printed = stop(worker)
    assert "consuming typed-orders at " in printed
    assert "payload types" not in printed
    assert "'b' failed (attempt 1 of 1) and is buried after 1 attempt: LookupError: no m" in printed
    assert "typed-orders: stopped, 2 handled, 1 failed, 1 buried" in printed


def test_a_worker_closes_the_queues_of_its_module(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'closed.db'}"
    with Worker(SHOP, None, SHOP_URL=url) as worker:
        with Queue.open(url, "mails") as mails:
            mails.offer("b", 1)
            worker.await_lines("sent b 1")
        stop(worker)
    assert [each.name for each in tmp_path.glob("closed.db*")] == ["closed.db"], "no log is left"


@pytest.mark.parametrize("processes", ["1", "2"])
def test_all_handlers_of_a_module_are_served(
    url: str, typed_orders: Queue[Order], processes: str
) -> None:
    with (
        Queue.open(url, "mails") as mails,
        Queue.open(url, "notices", codec=str) as notices,
        Worker(SHOP, None, "--processes", processes, SHOP_URL=url) as worker,
    ):
        typed_orders.offer("a", Order(40))
        worker.await_lines("charged a 40")
        mails.offer("b", 1)
        worker.await_lines("sent b 1")
        notices.offer("c", "hello")
        worker.await_lines("notified c hello")
        printed = stop(worker)
    assert "typed-orders, mails, notices: stopped, 3 handled, 0 failed, 0 buried" in printed


def test_flags_override_what_a_handler_brings(url: str) -> None:
    arguments = ("--url", url, "--queue=others", "--max-attempts=2", "--backoff=1ms:2ms")
    with (
        Queue.open(url, "others", codec=Order) as others,
        Worker(f"{SHOP}:charge", None, *arguments) as worker,
    ):
        others.offer("b", Order(0))
        until(lambda: others.stats().buried == 1)
        assert others.buried(1)[0].attempts == 2
        stop(worker)


def test_a_typed_queue_of_a_plain_function(url: str, typed_orders: Queue[Order]) -> None:
    typed_orders.offer("a", Order(40))
    arguments = ("--queue=typed-orders", f"--codec={SHOP}:Order")
    with Worker(f"{SHOP}:plain", None, *arguments, DUEQUEUE_URL=url) as worker:
        worker.await_lines("plain a Order(total=40)")
        stop(worker)


def test_a_wrong_codec_is_warned_about(url: str, typed_orders: Queue[Order]) -> None:
    typed_orders.offer("a", Order(40))
    arguments = ("--queue=typed-orders", "--log-level=warning")
    with Worker(f"{SHOP}:plain", None, *arguments, DUEQUEUE_URL=url) as worker:
        for line in worker.lines():
            if "payload types" in line:
                assert "'Order' with 1 live message, 'json' with 0 live messages" in line
                break
        stop(worker)


def test_a_quiet_worker_logs_only_what_it_should(url: str, orders: Queue[Any]) -> None:
    orders.offer("a", 1)
    with Worker("fail", url, "--quiet", "--log-level=error") as worker:
        until(lambda: (found := orders.read("a")) is not None and found.state is State.FUTURE)
        assert stop(worker) == ""


def test_a_lease_is_given_as_a_duration(url: str, orders: Queue[Any]) -> None:
    orders.offer("a", 1)
    with Worker("hang", url, "--lease", "5m", "--grace", "0") as worker:
        worker.await_lines("begun a")
        found = orders.read("a")
        assert found is not None
        assert found.leased_until is not None
        left = found.leased_until - datetime.now(UTC)
        assert 4 * MINUTE < left <= 5 * MINUTE
        stop(worker)


@pytest.mark.parametrize("argument", ["--queue=others", "--codec=text"])
def test_what_is_meant_for_one_handler_is_refused_for_several(
    bare: DueQueue, argument: str
) -> None:
    ran = bare("worker", SHOP, argument)
    assert ran.status == 1
    assert f"{argument.partition('=')[0]} is for a single handler, but there are 3" in ran.err


@pytest.mark.parametrize(
    ("argument", "complaint"),
    [
        ("--lease=5x", "not a duration"),
        ("--backoff=5s:x", "not a duration"),
        ("--backoff=-1s", "first must be at least one millisecond"),
        ("--max-attempts=many", "neither a number nor `none`"),
        ("--health-port=http", "is not a port"),
        ("--health-port=99999", "is not a port"),
        ("--log-level=loud", "invalid choice"),
    ],
)
def test_a_flag_that_cannot_be_read(bare: DueQueue, argument: str, complaint: str) -> None:
    ran = bare("worker", f"{SHOP}:charge", argument)
    assert ran.status == 2
    assert complaint in ran.err


def test_a_codec_that_is_not_there(bare: DueQueue) -> None:
    words = ("--url=memory:", "--queue=orders", f"--codec={SHOP}:Nothing")
    ran = bare("worker", f"{SHOP}:plain", *words)
    assert ran.status == 1
    assert f"module '{SHOP}' has no 'Nothing'" in ran.err
