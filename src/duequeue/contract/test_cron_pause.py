"""What is installed, and putting it on hold."""

from datetime import datetime

from duequeue import ConfigHash, CronStatus, Crontab, Daily, ManualClock, Misfire
from duequeue.contract.cron_phrases import (
    EVERY_MINUTE,
    ONE,
    TWO,
    after,
    assert_holds,
    eventually,
    keys,
    messages,
    periodic_keys,
    run_everything_due,
)
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START, OpenQueue
from duequeue.contract.phrases import HOUR, MINUTE, claim


def status(queue: QueueFace, prefix: str = "reports") -> CronStatus:
    (found,) = (each for each in queue.cron.list() if each.prefix == prefix)
    return found


def test_a_new_queue_has_no_crons(queue: QueueFace) -> None:
    assert queue.cron.list() == []


def test_what_is_installed_is_listed_by_prefix(open_queue: OpenQueue) -> None:
    queue, other = open_queue(), open_queue()
    noon = Crontab("0 12 * * *", "Asia/Calcutta")
    queue.cron.install_tick(ONE, "by hand", messages(7))
    queue.cron.install_periodic_tick("b", MINUTE, 1)
    queue.cron.install_daily_schedule("a", Daily(["19:00", "07:00"], "Europe/Berlin"), 1)
    queue.cron.install_expression("B", noon, 1)
    assert [(each.prefix, each.schedule) for each in other.cron.list()] == [
        ("B", "cron 0 12 * * * in Asia/Calcutta"),
        ("a", "daily at 07:00, 19:00 in Europe/Berlin"),
        ("b", "every minute"),
        ("by hand", ""),
    ]
    assert status(other, "b") == CronStatus(
        prefix="b",
        config_hash=EVERY_MINUTE,
        schedule="every minute",
        paused=False,
        next_tick=START + MINUTE,
        last_tick=None,
        generation=1,
    )


def test_the_next_and_the_last_tick(queue: QueueFace, clock: ManualClock) -> None:
    queue.cron.install_tick(ONE, "reports", messages(1, 2, 3))

    def next_and_last() -> tuple[datetime | None, datetime | None]:
        found = status(queue)
        return found.next_tick, found.last_tick

    one, two, three = after(1, 2, 3)
    clock.advance(MINUTE)
    assert next_and_last() == (one, None)
    delivery = claim(queue)
    assert next_and_last() == (two, one)
    assert delivery.ack()
    assert next_and_last() == (two, one)
    clock.advance(2 * MINUTE)
    assert len(run_everything_due(queue)) == 2
    assert next_and_last() == (None, three)
    # The last tick of a prefix is the last one, whatever its configuration was.
    queue.cron.install_tick(TWO, "reports", messages(4))
    assert next_and_last() == (*after(4), three)


def test_generations_count_the_changes_of_configuration(queue: QueueFace) -> None:
    generations = []
    for config_hash in (ONE, ONE, TWO, ConfigHash("ONE"), ONE):
        queue.cron.install_tick(config_hash, "reports", messages(1))
        generations.append(status(queue).generation)
    assert generations == [1, 1, 2, 3, 4]


def test_what_is_uninstalled_is_not_listed(queue: QueueFace) -> None:
    queue.cron.install_tick(ONE, "reports", messages(1))
    queue.cron.uninstall_tick(TWO, "reports")
    assert status(queue).config_hash == ONE
    queue.cron.uninstall_tick(ONE, "reports")
    assert queue.cron.list() == []


def test_a_pause_removes_what_nobody_was_given_yet(queue: QueueFace) -> None:
    queue.cron.install_tick(ONE, "reports", messages(0, 1, 2))
    delivery = claim(queue)
    assert queue.cron.pause("reports")
    assert_holds(queue, [delivery.key])
    assert delivery.ack()
    assert (status(queue).paused, status(queue).next_tick) == (True, None)


def test_pausing_and_resuming_twice_is_once(queue: QueueFace) -> None:
    queue.cron.install_tick(ONE, "reports", messages(1))
    assert not queue.cron.resume("reports")
    assert [queue.cron.pause("reports") for _ in range(2)] == [True, False]
    assert [queue.cron.resume("reports") for _ in range(2)] == [True, False]


def test_there_is_nothing_to_pause_where_nothing_is_installed(queue: QueueFace) -> None:
    assert not queue.cron.pause("reports")
    assert not queue.cron.resume("reports")
    queue.cron.install_tick(ONE, "reports", messages(1))
    queue.cron.uninstall_tick(ONE, "reports")
    assert not queue.cron.pause("reports")


def test_a_paused_cron_makes_no_ticks_on_any_node(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    first, second = open_queue(), open_queue()
    handles = [
        node.cron.install_periodic_tick("reports", MINUTE, "hello") for node in (first, second)
    ]
    assert second.cron.pause("reports")
    for _ in range(5):
        clock.advance(MINUTE)
        for handle in handles:
            handle.refresh()
    assert_holds(first, [])
    assert all(handle.active for handle in handles)
    assert first.cron.resume("reports")
    assert_holds(first, periodic_keys(6, 7, 8, 9))


def test_the_pause_is_not_a_misfire(queue: QueueFace, clock: ManualClock) -> None:
    everything = Misfire.fire_all(1000)
    queue.cron.install_periodic_tick("reports", MINUTE, "hello", misfire=everything)
    queue.cron.pause("reports")
    clock.advance(HOUR)
    queue.cron.resume("reports")
    assert_holds(queue, periodic_keys(61, 62, 63, 64))


def test_a_short_pause_changes_nothing(queue: QueueFace) -> None:
    queue.cron.install_periodic_tick("reports", MINUTE, "hello")
    queue.cron.pause("reports")
    queue.cron.resume("reports")
    assert_holds(queue, periodic_keys(1, 2, 3, 4))


def test_other_nodes_hear_of_a_resume_within_a_minute(
    open_queue: OpenQueue, clock: ManualClock
) -> None:
    node, operator = open_queue(), open_queue()
    handle = node.cron.install_periodic_tick("reports", HOUR, "hello")
    operator.cron.pause("reports")
    clock.advance(HOUR)
    eventually(lambda: operator.stats().total == 0)
    handle.refresh()
    operator.cron.resume("reports")
    clock.advance(MINUTE)
    eventually(lambda: operator.stats().total == 4)


def test_a_pause_outlives_a_deployment(open_queue: OpenQueue, clock: ManualClock) -> None:
    with open_queue("another"):
        with open_queue() as old:
            old.cron.install_periodic_tick("reports", 2 * MINUTE, "hello")
            old.cron.pause("reports")
        new = open_queue()
        handle = new.cron.install_periodic_tick("reports", MINUTE, "hello")
        assert new.cron.install_tick(EVERY_MINUTE, "reports", messages(1)) == 0
        assert_holds(new, [])
        assert (status(new).paused, status(new).generation) == (True, 2)
        clock.advance(HOUR)
        handle.refresh()
        assert_holds(new, [])
        new.cron.resume("reports")
        assert_holds(new, periodic_keys(61, 62, 63, 64))


def test_a_pause_leaves_other_prefixes_alone(queue: QueueFace) -> None:
    queue.cron.install_tick(ONE, "reports", messages(1))
    queue.cron.install_tick(ONE, "others", messages(1))
    queue.cron.pause("reports")
    assert_holds(queue, keys(after(1), ONE, "others"))
