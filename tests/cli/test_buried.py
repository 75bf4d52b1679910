"""`duequeue buried`, on every store."""

from datetime import timedelta
from typing import Any

import pytest

from duequeue import Queue
from tests.cli.conftest import DueQueue

HOUR = timedelta(hours=1)


def bury(queue: Queue[Any], *keys: str, reason: str = "ValueError: no") -> None:
    for key in keys:
        queue.offer(key, {"key": key}, -HOUR)
        delivery = queue.try_poll()
        assert delivery is not None
        assert delivery.bury(reason)


def test_burials_are_listed(duequeue: DueQueue, queue: Queue[Any]) -> None:
    bury(queue, "a", "b")
    bury(queue, "c", reason="timeout\nTraceback")
    listed = duequeue("buried", "ls", "--json").json
    assert [each["key"] for each in listed] == ["a", "b", "c"]
    assert [each["id"] for each in listed] == [each.id for each in queue.buried(10)]
    assert (listed[2]["reason"], listed[2]["attempts"]) == ("timeout\nTraceback", 1)
    assert listed[0]["payload"] == {"key": "a"}
    assert duequeue("buried", "ls", "-q", "--reason", "timeout").lines == ["c"]
    assert duequeue("buried", "ls").lines[3].endswith("timeout")
    some = duequeue("buried", "ls", "--limit", "2", "-q")
    assert some.lines == ["a", "b"]
    assert "there are more than 2" in duequeue("buried", "ls", "--limit", "2").err


def test_burials_are_listed_page_by_page(duequeue: DueQueue, queue: Queue[Any]) -> None:
    queue.offer_batch([])
    bury(queue, *(f"k{number}" for number in range(7)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("duequeue.cli.verbs.buried.ls.PAGE", 3)
        assert len(duequeue("buried", "ls", "--all", "-q").lines) == 7


def test_burials_are_revived_by_key(duequeue: DueQueue, queue: Queue[Any]) -> None:
    bury(queue, "a", "b")
    ran = duequeue("buried", "revive", "a", "x", "--due", "1h", "-q")
    assert (ran.status, ran.lines) == (4, ["a"])
    found = queue.read("a")
    assert found is not None
    assert found.state.value == "future"
    assert [each.key for each in queue.buried(10)] == ["b"]


def test_a_burial_is_revived_by_its_id(duequeue: DueQueue, queue: Queue[Any]) -> None:
    bury(queue, "a")
    bury(queue, "a", reason="again")
    first = queue.buried(1)[0].id
    assert duequeue("buried", "revive", "a", "--id", first).status == 0
    assert [each.reason for each in queue.buried(10)] == ["again"]


def test_all_burials_are_revived_by_their_reason(duequeue: DueQueue, queue: Queue[Any]) -> None:
    bury(queue, "a", "b")
    bury(queue, "c", reason="timeout")
    ran = duequeue("buried", "revive", "--all", "--reason", "timeout", "--json")
    assert (ran.status, ran.json) == (0, [{"queue": "orders", "revived": 1}])
    assert duequeue("buried", "revive", "--all", "-q").lines == ["2"]
    assert duequeue("buried", "revive", "--all").status == 4
    assert queue.stats().due == 3


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "pass either keys or --all"),
        (("a", "--all"), "pass either keys or --all"),
        (("a", "--reason", "x"), "pass --all with it"),
        (("a", "b", "--id", "1.1"), "pass its key with it"),
    ],
)
def test_what_to_revive_must_be_clear(
    duequeue: DueQueue, queue: Queue[Any], words: tuple[str, ...], complaint: str
) -> None:
    ran = duequeue("buried", "revive", *words)
    assert ran.status == 1
    assert complaint in ran.err


def test_burials_are_purged_with_consent(duequeue: DueQueue, queue: Queue[Any]) -> None:
    bury(queue, "a", "b", "c")
    assert duequeue("buried", "purge", "--older-than", "1h", "--yes").status == 4
    dry = duequeue("buried", "purge", "--all", "--dry-run")
    assert (dry.status, dry.err) == (0, "3 burials would be deleted; nothing was changed\n")
    refused = duequeue("buried", "purge", "--all")
    assert refused.status == 1
    assert "pass --yes" in refused.err
    assert queue.stats().buried == 3
    one = queue.buried(1)[0].id
    assert duequeue("buried", "purge", "--id", one, "--yes", "-q").lines == ["1"]
    assert duequeue("buried", "purge", "--id", one, "--yes").status == 4
    purged = duequeue("buried", "purge", "--before", "1m", "--yes", "--json")
    assert purged.json == [{"queue": "orders", "purged": 2}]
    assert queue.stats().buried == 0


def test_what_to_purge_must_be_said(duequeue: DueQueue, queue: Queue[Any]) -> None:
    assert duequeue("buried", "purge", "--yes").status == 2
    assert duequeue("buried").status == 2
