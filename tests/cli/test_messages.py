"""The verbs for single messages, on every store."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from duequeue import BytesCodec, Message, Queue, State, TextCodec
from tests.cli.conftest import DueQueue
from tests.cli.payload_types import Order

HOUR = timedelta(hours=1)
DUE = datetime(2031, 11, 18, 6, tzinfo=UTC)


def read(queue: Queue[Any], key: str) -> Any:
    found = queue.read(key)
    assert found is not None
    return found


def test_an_offer_creates_updates_and_ignores(duequeue: DueQueue, queue: Queue[Any]) -> None:
    offer = ("offer", "order-7", '{"total": 40}', "--due", "2031-11-18T07:00:00+01:00", "--jsonl")
    first, again = duequeue(*offer), duequeue(*offer)
    changed = duequeue("offer", "order-7", '{"total": 41}', "--due", "2031-11-18T06:00Z", "--jsonl")
    due_at = "2031-11-18T06:00:00.000Z"
    assert [ran.jsonl for ran in (first, again, changed)] == [
        [{"key": "order-7", "outcome": outcome, "due_at": due_at}]
        for outcome in ("created", "ignored", "updated")
    ]
    found = read(queue, "order-7")
    assert (found.payload, found.due_at) == ({"total": 41}, DUE)


def test_an_offer_has_headers_an_expiry_and_may_leave_alone(
    duequeue: DueQueue, queue: Queue[Any]
) -> None:
    ran = duequeue(
        *("offer", "a", "1", "--due", "2031-11-18T06:00Z", "--expires", "2031-11-18T07:00Z"),
        *("--header", "trace=a=b", "--header", "tenant=7"),
    )
    assert ran.status == 0
    found = read(queue, "a")
    assert found.headers == {"trace": "a=b", "tenant": "7"}
    assert (found.due_at, found.expires_at) == (DUE, DUE + HOUR)
    assert duequeue("offer", "a", "2", "--no-replace", "--json").json[0]["outcome"] == "ignored"
    assert read(queue, "a").payload == 1


def test_a_payload_comes_from_an_argument_a_file_or_standard_input(
    duequeue: DueQueue, queue: Queue[Any], tmp_path: Path
) -> None:
    (tmp_path / "order.json").write_text('{"from": "file"}')
    duequeue("offer", "none")
    duequeue("offer", "file", "@order.json")
    duequeue("offer", "stdin", "-", stdin='{"from": "stdin 😀"}'.encode())
    payloads = [read(queue, key).payload for key in ("none", "file", "stdin")]
    assert payloads == [None, {"from": "file"}, {"from": "stdin 😀"}]
    missing = duequeue("offer", "x", "@missing.json")
    assert (missing.status, queue.contains("x")) == (1, False)
    assert (
        missing.err
        == "duequeue: payload file missing.json cannot be read: No such file or directory\n"
    )


def test_what_is_not_json_is_refused(duequeue: DueQueue, queue: Queue[Any]) -> None:
    ran = duequeue("offer", "a", "{total: 40}")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("duequeue: payload is not json: ")
    assert ran.err.endswith("quote it for your shell, or pass --text\n")
    assert queue.stats().total == 0


def test_offers_take_the_type_of_the_queue(duequeue: DueQueue, store_url: str) -> None:
    with (
        Queue.open(store_url, "mails", codec=TextCodec()) as mails,
        Queue.open(store_url, "images", codec=BytesCodec()) as images,
    ):
        assert duequeue("offer", "a", "hello", "--queue", "mails").status == 0
        assert duequeue("offer", "a", "-", "--queue", "images", stdin=b"\xff\x00").status == 0
        assert (read(mails, "a").payload, read(images, "a").payload) == ("hello", b"\xff\x00")
        wrong = duequeue("offer", "b", "hello", "--queue", "mails", "--bytes")
        assert wrong.status == 1
        assert "has the payload type text, not bytes" in wrong.err
        (shown,) = duequeue("ls", "--queue", "images", "--json").json
        assert shown["payload_b64"] == "/wA="
        assert "payload" not in shown
        assert duequeue("ls", "--queue", "mails", "--json").json[0]["payload"] == "hello"
        raw = duequeue("show", "a", "--queue", "images", "--payload")
        assert raw.out.encode(errors="surrogateescape") == b"\xff\x00"


def test_a_typed_queue_is_read_without_its_type_but_not_written(
    duequeue: DueQueue, store_url: str
) -> None:

    with Queue.open(store_url, "typed", codec=Order) as queue:
        queue.offer("a", Order(total=40))
        assert duequeue("show", "a", "--queue", "typed", "--json").json["payload"] == {"total": 40}
        unchecked = duequeue("offer", "b", '{"total": 1}', "--queue", "typed")
        assert unchecked.status == 1
        assert "pass --codec module:Class" in unchecked.err
        typed = ("--queue", "typed", "--codec", "tests.cli.payload_types:Order")
        assert duequeue("offer", "b", '{"total": 1}', *typed).status == 0
        assert read(queue, "b").payload == Order(total=1)
        wrong = duequeue("offer", "c", '{"total": "many"}', *typed)
        assert (wrong.status, queue.contains("c")) == (1, False)
        assert "payload is not Order: " in wrong.err


def test_ls_selects_and_limits(duequeue: DueQueue, queue: Queue[Any]) -> None:
    queue.offer_batch(
        [
            *(Message(f"order-{number}", number, (number + 1) * HOUR) for number in range(3)),
            Message("mail-1", 9, -HOUR),
        ]
    )
    assert duequeue("ls", "-q").lines == ["mail-1", "order-0", "order-1", "order-2"]
    assert duequeue("ls", "-q", "--state", "due").lines == ["mail-1"]
    assert duequeue("ls", "-q", "--prefix", "order-", "--due-to", "150m").lines == [
        "order-0",
        "order-1",
    ]
    assert duequeue("ls", "-q", "--due-from", "150m").lines == ["order-2"]
    some = duequeue("ls", "--limit", "2", "--jsonl")
    assert [each["key"] for each in some.jsonl] == ["mail-1", "order-0"]
    assert "there are more than 2" in some.err
    every = duequeue("ls", "--limit", "4")
    assert (every.err, len(every.lines)) == ("", 5)
    assert duequeue("ls", "--state", "leased").out == ""
    assert duequeue("ls", "--state", "leased", "--json").json == []


def test_ls_goes_through_all_pages(duequeue: DueQueue, queue: Queue[Any]) -> None:
    queue.offer_batch(Message(f"order-{number:04}", number, HOUR) for number in range(2100))
    assert len(duequeue("ls", "--all", "-q").lines) == 2100
    assert len(duequeue("ls", "--limit", "1500", "--json").json) == 1500
    assert len(duequeue("ls").lines) == 101


def test_a_table_has_titles_and_one_line_for_each_message(
    duequeue: DueQueue, queue: Queue[Any]
) -> None:
    queue.offer("order-7", {"total": 40}, -90 * timedelta(minutes=1))
    titles, row = duequeue("ls").lines
    assert titles.split() == ["KEY", "STATE", "DUE", "ATTEMPTS", "PAYLOAD"]
    assert row.startswith("order-7  due    ")
    assert row.endswith('1.5 h ago         0  {"total":40}')


def test_show_shows_every_state(duequeue: DueQueue, queue: Queue[Any]) -> None:
    queue.offer("a", [1], DUE, headers={"tenant": "7"})
    shown = duequeue("show", "a", "--json").json
    assert (shown["state"], shown["due_at"]) == ("future", "2031-11-18T06:00:00.000Z")
    assert (shown["headers"], shown["payload"]) == ({"tenant": "7"}, [1])
    queue.run_now("a")
    delivery = queue.try_poll()
    assert delivery is not None
    assert duequeue("show", "a", "--json").json["state"] == "leased"
    delivery.bury("no such customer")
    lines = duequeue("show", "a").lines
    assert [line.split(maxsplit=1) for line in lines][-3:] == [
        ["reason", "no such customer"],
        ["headers", '{"tenant":"7"}'],
        ["payload", "[1]"],
    ]
    history = duequeue("show", "a", "--history", "--json").json
    assert [(row["outcome"], row["attempts"]) for row in history] == [("buried", 1)]
    assert duequeue("show", "a", "--payload").out == "[1]"


@pytest.mark.parametrize("words", [("show", "x"), ("show", "x", "--history")])
def test_a_missing_message_is_not_found(
    duequeue: DueQueue, queue: Queue[Any], words: tuple[str, ...]
) -> None:
    ran = duequeue(*words)
    assert (ran.status, ran.out) == (4, "")
    assert "'x'" in ran.err


def test_messages_are_rescheduled_and_run_now(duequeue: DueQueue, queue: Queue[Any]) -> None:
    queue.offer_batch([Message(key, 1, HOUR) for key in ("a", "b", "c")])
    ran = duequeue("reschedule", "a", "x", "b", "--due", "2031-11-18T06:00:00Z", "--jsonl")
    assert ran.status == 4
    assert [row["key"] for row in ran.jsonl] == ["a", "b"]
    assert ran.err == "'x' is not in the queue\n"
    assert [read(queue, key).due_at == DUE for key in ("a", "b", "c")] == [True, True, False]
    assert duequeue("run-now", "-", "-q", stdin=b"b\nc\n").lines == ["b", "c"]
    assert [read(queue, key).state for key in "bc"] == [State.DUE, State.DUE]


def test_keys_flow_from_one_command_to_the_next(duequeue: DueQueue, queue: Queue[Any]) -> None:
    queue.offer_batch([Message(key, 1, HOUR) for key in ("old 1", "old 2", "neu ü", "new")])
    keys = duequeue("ls", "-q", "--prefix", "old ").out
    assert duequeue("drop", "-", "--yes", "-q", stdin=keys.encode()).lines == ["old 1", "old 2"]
    assert duequeue("ls", "-q").lines == ["neu ü", "new"]


def test_drop_deletes_only_with_consent(duequeue: DueQueue, queue: Queue[Any]) -> None:
    queue.offer_batch([Message(key, 1, HOUR) for key in ("a-1", "a-2", "b")])
    refused = duequeue("drop", "b")
    assert (refused.status, queue.stats().total) == (1, 3)
    assert "pass --yes" in refused.err
    dry = duequeue("drop", "--prefix", "a-", "--dry-run", "-q")
    assert (dry.lines, queue.stats().total) == (["a-1", "a-2"], 3)
    assert duequeue("drop", "a-1", "x", "--dry-run").lines == ["KEY", "a-1"]
    assert duequeue("drop", "--prefix", "a-", "--yes", "-q").lines == ["a-1", "a-2"]
    assert duequeue("drop", "--prefix", "a-", "--yes").status == 4
    assert duequeue("drop", "--all", "--yes", "--json").json == [{"queue": "orders", "dropped": 1}]
    assert queue.stats().total == 0


def test_a_selected_key_never_stands_for_standard_input(
    duequeue: DueQueue, queue: Queue[Any]
) -> None:
    queue.offer_batch([Message(key, 1, HOUR) for key in ("-", "other")])
    ran = duequeue("drop", "--prefix", "-", "--yes", "-q", stdin=b"other\n")
    assert (ran.status, ran.lines) == (0, ["-"])
    assert queue.contains("other")


@pytest.mark.parametrize(
    ("given", "due"),
    [("--state=due", 24 * HOUR), ("--due-to=now", 24 * HOUR), ("--due-from=-2h", -24 * HOUR)],
)
def test_drop_leaves_a_message_that_was_changed_in_the_meantime(
    duequeue: DueQueue,
    queue: Queue[Any],
    given: str,
    due: timedelta,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue.offer_batch([Message(key, 1, -HOUR) for key in ("a", "b", "c")])

    def change_and_agree(*_: object) -> bool:
        queue.reschedule("b", due)
        queue.drop("c")
        return True

    monkeypatch.setattr("duequeue.cli.verbs.drop.agreed", change_and_agree)
    ran = duequeue("drop", given)
    assert (ran.status, queue.contains("a"), queue.contains("b")) == (4, False, True)
    assert ran.err == "'b' is no longer selected\n'c' is no longer selected\n"


@pytest.mark.parametrize("words", [(), ("a", "--all"), ("--all", "--prefix", "a")])
def test_drop_takes_keys_or_filters_or_all(
    duequeue: DueQueue, queue: Queue[Any], words: tuple[str, ...]
) -> None:
    queue.offer("a", 1)
    ran = duequeue("drop", *words, "--yes")
    assert (ran.status, queue.stats().total) == (1, 1)
    assert "pass either keys, or filters such as --prefix, or --all" in ran.err


def test_a_poll_puts_back_unless_told_otherwise(duequeue: DueQueue, queue: Queue[Any]) -> None:
    queue.offer_batch([Message(f"order-{number}", number, -HOUR) for number in range(5)])
    ran = duequeue("poll", "--json")
    (found,) = ran.json
    assert (found["key"], found["payload"], found["attempt"]) == ("order-0", 0, 1)
    assert ran.err == "1 message put back; pass --ack to delete what you fetch\n"
    assert read(queue, "order-0").state is State.DUE
    queue.drop("order-0")
    assert duequeue("poll", "--ack", "--limit", "2", "-q").lines == ["order-1", "order-2"]
    assert not queue.contains("order-1")
    assert duequeue("poll", "--release", "1h").status == 0
    assert read(queue, "order-3").state is State.FUTURE
    assert duequeue("poll", "--bury", "broken").status == 0
    assert read(queue, "order-4").reason == "broken"
    empty = duequeue("poll", "--wait", "10ms")
    assert (empty.status, empty.out, empty.err) == (4, "", "no message is due\n")


def test_a_poll_that_cannot_print_what_it_found_puts_it_back(
    duequeue: DueQueue, queue: Queue[Any]
) -> None:
    queue.offer_batch([Message(key, 1) for key in ("a", "b\nc")])
    ran = duequeue("poll", "--limit", "2", "--ack", "-q")
    assert (ran.status, ran.lines) == (1, ["a"])
    assert "contains a line break" in ran.err
    assert [read(queue, key).state for key in ("a", "b\nc")] == [State.DUE, State.DUE]


def test_a_poll_may_hold_what_it_found(duequeue: DueQueue, queue: Queue[Any]) -> None:
    queue.offer("a", 1)
    (held,) = duequeue("poll", "--hold", "1h", "--json").json
    found = read(queue, "a")
    assert found.state is State.LEASED
    assert found.leased_until == datetime.fromisoformat(held["lease_until"])
    refused = duequeue("poll", "--hold", "0s")
    assert refused.status == 1
    assert "lease must be at least one millisecond" in refused.err


def test_the_queue_is_the_only_one_or_must_be_named(
    duequeue: DueQueue, queue: Queue[Any], store_url: str
) -> None:
    assert duequeue("ls").status == 0
    with Queue.open(store_url, "invoices"), Queue.open(store_url, "orders", codec=TextCodec()):
        several = duequeue("ls")
        assert several.status == 1
        assert "pass --queue with one of invoices, orders" in several.err
        types = duequeue("ls", "--queue", "orders")
        assert "pass --type with one of json, text" in types.err
        assert duequeue("ls", "--queue", "orders", "--type", "text").status == 0
        assert duequeue("ls", "--queue", "orders", "--type", "Order").status == 4
        unknown = duequeue("ls", "--queue", "missing")
        assert unknown.status == 4
        assert "has no queue 'missing'" in unknown.err
        assert sorted(duequeue("queues", "-q").lines) == ["invoices", "orders", "orders"]


def test_a_key_with_a_line_break_is_never_taken_for_two(
    duequeue: DueQueue, queue: Queue[Any]
) -> None:
    queue.offer("two\nlines", 1)
    quiet = duequeue("ls", "-q")
    assert quiet.status == 1
    assert "use --jsonl instead of --quiet" in quiet.err
    assert duequeue("ls", "--jsonl").jsonl[0]["key"] == "two\nlines"
    assert duequeue("ls").lines[1].startswith(r"two\nlines  ")


def test_a_key_cannot_control_the_terminal(duequeue: DueQueue, queue: Queue[Any]) -> None:
    queue.offer("red \x1b[31m", "\x1b]0;title\x07")
    assert "\x1b" not in duequeue("ls").out
    assert "\x1b" not in duequeue("show", "red \x1b[31m").out
