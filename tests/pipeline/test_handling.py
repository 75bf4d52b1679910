"""What a handler returned or raised, message by message: one that fails fails alone."""

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from duequeue import Backoff, Bury, InvalidType, ManualClock, Queue, Retry
from duequeue.pipeline.delivering.handling import (
    Handling,
    Received,
    Result,
    log_errors,
    outcomes_of,
    timed,
)
from duequeue.spark.options import parse
from duequeue.verdict import Rules

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def received(*payloads: Any) -> list[Received | Bury]:
    return [Received(f"k{at}", payload, NOW, 1) for at, payload in enumerate(payloads)]


def test_results_are_json() -> None:
    outcomes = outcomes_of(lambda batch: [{"n": each.payload} for each in batch], received(1, 2))
    assert outcomes == [Result('{"n":1}'), Result('{"n":2}')]


def test_nothing_returned_is_nothing_to_write() -> None:
    assert outcomes_of(lambda _: None, received(1, 2)) == [Result(None)] * 2
    assert outcomes_of(lambda batch: [None for _ in batch], received(1)) == [Result(None)]


def test_a_poison_message_fails_alone() -> None:
    def handler(batch: list[Received]) -> None:
        if any(each.payload == "poison" for each in batch):
            raise RuntimeError("bitter")

    first, second, third = outcomes_of(handler, received(1, "poison", 3))
    assert (first, third) == (Result(None), Result(None))
    assert isinstance(second, RuntimeError)


def test_errors_may_be_returned() -> None:
    bury = Bury("no such customer")
    assert outcomes_of(lambda _: [bury, 1], received(1, 2)) == [bury, Result("1")]


@pytest.mark.parametrize(
    "returned", ["ab", {"k0": 1, "k1": 2}, {1, 2}, [1, 2, 3], 3, (each for each in "ab")]
)
def test_only_a_list_has_a_result_for_each_message(returned: Any) -> None:
    for outcome in outcomes_of(lambda _: returned, received(1, 2)):
        assert isinstance(outcome, TypeError)
        assert "must return None, or a list" in str(outcome)


def test_the_first_error_is_told(caplog: pytest.LogCaptureFixture) -> None:
    log_errors(["a", "b", "c"], [Result(None), KeyError("x"), ValueError("y")])
    assert caplog.messages == ["2 of 3 messages failed; the first was 'b', with KeyError('x')"]


def test_what_a_handler_has_decided_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    log_errors(["a", "b", "c"], [Result(None), Bury("no"), Retry()])
    assert caplog.messages == []


def test_what_cannot_be_decoded_is_not_handed_over() -> None:
    bury = Bury("undecodable")
    seen: list[str] = []
    outcomes = outcomes_of(
        lambda batch: seen.extend(each.key for each in batch), [bury, *received(1)]
    )
    assert outcomes == [bury, Result(None)]
    assert seen == ["k0"]


@pytest.mark.parametrize("returned", [[], [1, 2, 3], "ab"])
def test_one_result_for_each_message(returned: Any) -> None:
    outcomes = outcomes_of(lambda _: returned, received(1, 2))
    assert [type(outcome) for outcome in outcomes] == [InvalidType, InvalidType]


def test_a_result_that_is_no_json_fails_its_message() -> None:
    outcomes = outcomes_of(lambda batch: [each.payload for each in batch], received(object(), 1))
    assert [type(outcome) for outcome in outcomes] == [TypeError, Result]


@pytest.mark.parametrize(("seconds", "noted"), [(0.25, 250), (-3600, 0)])
def test_handler_times_are_those_of_the_clock(seconds: float, noted: int) -> None:
    clock, times = ManualClock(NOW), dict[str, int]()
    handler = timed(lambda _: clock.advance(timedelta(seconds=seconds)), times, clock)
    handler([Received("a", 1, NOW, 1), Received("b", 2, NOW, 1)])
    assert times == {"a": noted, "b": noted}


def test_handler_times_that_cannot_be_noted_do_not_fail_the_messages(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise Spark would run the partition again, and all its handlers."""
    url = f"sqlite:///{tmp_path / 'queue.db'}"
    Queue.open(url, "orders").close()
    with sqlite3.connect(tmp_path / "queue.db") as file:
        file.execute("ALTER TABLE duequeue_stream_batch RENAME TO elsewhere")
    options = parse({"url": url, "queue": "orders", "history": "true", "migrate": "false"})
    lease = {"consumer": "me", "sequence": 1, "id": 1}
    row = {"key": "a", "payload": b"1", "headers": None, "due_at": 0, "attempt": 1, "lease": lease}
    handling = Handling(lambda _: None, options, Rules(Backoff(), None), 100)
    assert handling.outcomes(pa.array([row])).to_pylist() == [{"outcome": "acked", "result": None}]
    assert "could not note how long the handler took" in caplog.text
