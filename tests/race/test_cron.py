"""Crons of many processes, whose clocks disagree, whose configurations differ, and who die."""

import logging
import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from itertools import count

import pytest

from duequeue import ConfigHash, Every, ManualClock, Misfire
from duequeue.contract.cron_phrases import (
    ONE,
    TWO,
    after,
    eventually,
    key_of,
    keys,
    messages,
    periodic_keys,
    run_everything_due,
)
from duequeue.contract.faces import CronHandleFace, Face, QueueFace
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import MINUTE, SECOND, claim
from tests.fixtures.postgres import PostgresServer
from tests.race.conftest import OpenRival
from tests.race.crew import Crew, Hand
from tests.race.cron_parts import (
    be_a_node,
    install_and_die,
    install_and_keep,
    refresh_twice_and_let_go,
)
from tests.race.together import alternating, together

MINUTES = 15


def test_each_tick_once_however_many_nodes_and_clocks(store_url: str, crew: Crew) -> None:
    nodes = [
        partial(
            be_a_node,
            store_url,
            START + timedelta(seconds=seconds),
            START + MINUTES * MINUTE + timedelta(seconds=seconds),
        )
        for seconds in (0, 3, -7, 11)
    ]
    ran = [key for each in crew.together(nodes) for key in each]
    assert sorted(ran) == periodic_keys(*range(MINUTES + 1))


def test_of_two_configurations_one_wins_and_the_other_stops(
    open_rival: OpenRival, store_url: str, crew: Crew
) -> None:
    queue = open_rival()
    for _ in range(3):
        periods = [1, 2, 1, 2]
        crew.together([partial(install_and_keep, store_url, minutes) for minutes in periods])
        (status,) = queue.cron.list()
        winner = 1 if status.config_hash == ConfigHash.of(Every(MINUTE)) else 2
        ticks = keys(after(*(winner * n for n in range(1, 5))), status.config_hash)
        assert all(queue.contains(key) for key in ticks)
        assert queue.stats().total == 4

        outcomes = crew.together([refresh_twice_and_let_go for _ in periods])
        for minutes, (active, log) in zip(periods, outcomes, strict=True):
            assert active == (minutes == winner)
            assert len(log) == (minutes != winner)
            assert all("another configuration was installed later" in line for line in log)
        assert queue.stats().total == 4


def test_killed_between_any_two_steps_of_an_installation(
    open_rival: OpenRival, store: str, store_url: str
) -> None:
    if store == "http":
        pytest.skip("over HTTP an installation is one request, and its steps are the server's")
    queue = open_rival()
    new = ConfigHash.of(Every(MINUTE))
    survived = False
    for commands in count(1):
        prefix = f"killed after {commands}"
        before = keys(after(1, 2, 3), ONE, prefix)
        everything = keys(after(1, 2, 3, 4), new, prefix)
        queue.cron.install_tick(ONE, prefix, messages(1, 2, 3))

        survived = survives(partial(install_and_die, store_url, prefix, commands))
        there = [key for key in before + everything if queue.contains(key)]
        installed = {each.prefix: each.config_hash for each in queue.cron.list()}[prefix]
        # On Redis the last command is the commit, and whoever dies after it has installed.
        whole = [(everything, new)] if survived else [(before, ONE)]
        whole += [(everything, new)] * (store == "redis")
        assert (there, installed) in whole
        assert queue.stats().total == len(there)

        queue.cron.install_periodic_tick(prefix, MINUTE, "hello").close()
        assert all(queue.contains(key) for key in everything)
        assert queue.stats().total == len(everything)
        assert queue.cron.uninstall_tick(new, prefix) == len(everything)
        if survived:
            break
    assert commands > (2 if store == "redis" else 8)


def survives(call: Callable[[], object]) -> bool:
    hand = Hand()
    try:
        hand.start(call)
        return bool(hand.outcome().value == "survived")
    except EOFError:
        return False
    finally:
        hand.end()


def test_a_claim_racing_a_new_configuration(open_rival: OpenRival) -> None:
    consumer, installer = open_rival(), open_rival()
    for number in range(40):
        prefix = f"reports-{number}"
        installer.cron.install_tick(ONE, prefix, messages(0))
        delivery, _ = alternating(
            number,
            consumer.try_poll,
            partial(installer.cron.install_tick, TWO, prefix, []),
        )
        if delivery is None:
            assert not consumer.contains(key_of(START, ONE, prefix))
        else:
            assert delivery.ack()
        assert consumer.stats().total == 0


def test_a_claim_racing_a_new_payload(open_rival: OpenRival) -> None:
    consumer, installer = open_rival(), open_rival()
    for number in range(40):
        prefix = f"reports-{number}"
        installer.cron.install_tick(ONE, prefix, messages(0, payload="old"))
        new = messages(0, payload="new")
        delivery, _ = alternating(
            number,
            consumer.try_poll,
            partial(installer.cron.install_tick, ONE, prefix, new),
        )
        if delivery is None:
            delivery = claim(consumer)
            assert delivery.payload == "new"
        assert delivery.ack()
        assert consumer.stats().total == 0


def test_many_installations_at_once(open_rival: OpenRival) -> None:
    queues = [open_rival() for _ in range(6)]
    for number in range(10):
        prefix = f"reports-{number}"
        created = together(
            *(partial(queue.cron.install_tick, ONE, prefix, messages(1, 2, 3)) for queue in queues)
        )
        assert sorted(created) == [0, 0, 0, 0, 0, 3]


def test_pauses_and_refreshes_at_once(open_rival: OpenRival) -> None:
    node, operator = open_rival(), open_rival()
    handle = node.cron.install_periodic_tick("reports", MINUTE, "hello")
    for number in range(20):
        alternating(number, handle.refresh, partial(operator.cron.pause, "reports"))
        assert operator.stats().total == 0
        alternating(number, handle.refresh, partial(operator.cron.resume, "reports"))
        handle.refresh()
        assert operator.stats().total == 4


def test_an_unreachable_database_is_survived(
    face: Face, clock: ManualClock, frail_server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    url = frail_server.create_database()

    with (
        caplog.at_level(logging.WARNING, "duequeue"),
        face.open(url, "orders", clock=clock) as queue,
        other_cron(face, clock) as other,
    ):
        everything = Misfire.fire_all(100)
        handle = queue.cron.install_periodic_tick("reports", MINUTE, 1, misfire=everything)
        with frail_server.stopped("immediate"):
            clock.advance(10 * MINUTE)
            # Either the outage or the failed run is logged, whichever comes first.
            logged = re.compile("the store is unavailable|this run failed and will be repeated")
            eventually(lambda: bool(logged.search(caplog.text)))
            # The crons of another store go on.
            eventually(lambda: other.contains(periodic_keys(14)[0]))
        clock.advance(10 * SECOND)
        eventually(partial(caught_up, queue, handle))
        assert run_everything_due(queue) == periodic_keys(*range(1, 11))
        assert handle.active
        assert frail_server.password not in caplog.text


def caught_up(queue: QueueFace, handle: CronHandleFace) -> bool:
    """Tell so; and do not wait for the background, whose clock stands still."""
    handle.refresh()
    return queue.contains(periodic_keys(14)[0])


def other_cron(face: Face, clock: ManualClock) -> QueueFace:
    queue = face.open("memory:unconcerned", "orders", clock=clock)
    queue.cron.install_periodic_tick("reports", MINUTE, 1)
    return queue
