"""How an executor calls a handler, and settles the messages that failed."""

import logging
from collections.abc import Callable, Mapping, Sequence, Sized
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa

from duequeue.bulk.port import BatchId
from duequeue.clock import Clock, SystemClock, millis_of
from duequeue.codec import CODECS
from duequeue.errors import DueQueueError, InvalidType
from duequeue.flows.settling import storable
from duequeue.instants import from_millis, span_to_millis
from duequeue.port.store import Burial, Lease, Release
from duequeue.spark.open_bulk import OpenBulk
from duequeue.spark.options import Options
from duequeue.verdict import Acked, Bury, Parked, Released, Retry, Rules, Verdict, as_raised, judge

logger = logging.getLogger("duequeue.pipeline")

OUTCOME = pa.struct([("outcome", pa.string()), ("result", pa.string())])
_NAMES = {Acked: "acked", Released: "released", Parked: "buried"}


@dataclass(frozen=True, slots=True)
class Received:
    """A message in the hands of a handler on an executor."""

    key: str
    payload: Any
    due_at: datetime
    attempt: int
    headers: dict[str, str] = field(default_factory=dict)


Handler = Callable[[list[Received]], Sequence[Any] | None]


@dataclass(frozen=True)
class Handling:
    """The handler, the number of messages that each call gets, and the rules for failures."""

    handler: Handler
    options: Options
    rules: Rules
    batch: int

    def outcomes(self, messages: pa.Array) -> pa.Array:
        """Handle messages, settle those that failed, and return the outcome of each.

        Their instants are in milliseconds, because a datetime in the session's time zone cannot
        hold the first and the last ones.
        """
        rows = messages.to_pylist()
        outcomes: list[dict[str, str | None]] = []
        times: dict[str, int] = {}
        for start in range(0, len(rows), self.batch):
            outcomes += self._handle(rows[start : start + self.batch], times)
        if self.options.history:
            self._note(rows, times)
        return pa.array(outcomes, OUTCOME)

    def _handle(
        self, rows: list[dict[str, Any]], times: dict[str, int]
    ) -> list[dict[str, str | None]]:
        handler = timed(self.handler, times)
        outcomes = outcomes_of(handler, [self._received(row) for row in rows])
        log_errors([row["key"] for row in rows], outcomes)
        verdicts = [
            self._verdict(outcome, row) for outcome, row in zip(outcomes, rows, strict=True)
        ]
        self._settle(
            [
                (row, verdict)
                for row, verdict in zip(rows, verdicts, strict=True)
                if not isinstance(verdict, Acked)
            ],
            times,
        )
        return [
            {"outcome": _NAMES[type(verdict)], "result": getattr(outcome, "encoded", None)}
            for outcome, verdict in zip(outcomes, verdicts, strict=True)
        ]

    def _verdict(self, outcome: object, row: dict[str, Any]) -> Verdict:
        """Judge one outcome; a backoff that raises must not fail the whole partition."""
        try:
            return judge(outcome, row["attempt"], self.rules)
        except Exception:
            logger.exception(
                "could not judge the outcome of %r, so it is released at once", row["key"]
            )
            return Released(timedelta(0))

    def _note(self, rows: list[dict[str, Any]], times: dict[str, int]) -> None:
        """Note how long the handler took; the ack of the batch will add it to the history.

        An error is only logged, because it would make Spark call the handlers again.
        """
        handled = {row["lease"]["id"]: times[row["key"]] for row in rows if row["key"] in times}
        if not handled:
            return
        try:
            with OpenBulk(self.options) as bulk:
                bulk.run(partial(bulk.store.note_handled, _batch_of(rows[0]), handled))
        except DueQueueError as error:
            logger.warning(
                "could not note how long the handler took for %d messages: %s", len(handled), error
            )

    def _settle(self, failed: list[tuple[dict[str, Any], Verdict]], times: dict[str, int]) -> None:
        """Release or bury failed messages now; the ack of their batch will then skip them."""
        if not failed:
            return
        batch = _batch_of(failed[0][0])
        with OpenBulk(self.options) as bulk:
            now = bulk.now()
            releases, burials = [], []
            for row, verdict in failed:
                lease = Lease(row["lease"]["id"], 0, now, row["key"], times.get(row["key"]))
                if isinstance(verdict, Parked):
                    attempts = (
                        row["attempt"] - 1 if self._has_no_attempts_left(row) else row["attempt"]
                    )
                    burials.append(Burial(lease, attempts, storable(verdict.reason)))
                elif isinstance(verdict, Released):
                    releases.append(Release(lease, now + span_to_millis(verdict.delay, "delay")))
            if releases:
                bulk.run(partial(bulk.store.release, batch, releases))
            if burials:
                bulk.run(partial(bulk.store.bury, batch, burials, now))

    def _received(self, row: dict[str, Any]) -> Received | Bury:
        """Return the message for the handler, or a Bury if it cannot be delivered."""
        if self._has_no_attempts_left(row):
            return Bury(f"max_attempts: delivered {row['attempt'] - 1} times without an ack")
        try:
            payload = CODECS[self.options.codec].decode(row["payload"])
        except Exception as error:  # noqa: BLE001 - any error out of decode means undecodable
            return Bury(f"undecodable payload: {error!r}")
        headers = dict(row["headers"] or {})
        return Received(row["key"], payload, from_millis(row["due_at"]), row["attempt"], headers)

    def _has_no_attempts_left(self, row: dict[str, Any]) -> bool:
        """Return whether a message was already delivered `max_attempts` times."""
        most = self.rules.max_attempts
        return most is not None and row["attempt"] > most


def _batch_of(row: dict[str, Any]) -> BatchId:
    return BatchId(row["lease"]["consumer"], row["lease"]["sequence"])


def timed(handler: Handler, times: dict[str, int], clock: Clock | None = None) -> Handler:
    """Return a handler that notes, for each message's key, how many milliseconds its call took.

    As in a consumer, that is the time of the clock, and it is zero if the clock was set back.
    """
    now = millis_of(clock or SystemClock())

    def call(received: list[Received]) -> Sequence[Any] | None:
        began = now()
        try:
            return handler(received)
        finally:
            took = max(0, now() - began)
            times.update({each.key: took for each in received})

    return call


def log_errors(keys: list[str], outcomes: list[object]) -> None:
    """Log the first error of the messages that a handler got together, and the number of errors."""
    errors = [
        (key, outcome)
        for key, outcome in zip(keys, outcomes, strict=True)
        if isinstance(outcome, Exception) and not isinstance(outcome, Bury | Retry)
    ]
    if errors:
        key, error = errors[0]
        logger.warning(
            "%d of %d messages failed; the first was %r, with %r",
            len(errors),
            len(keys),
            key,
            error,
        )


@dataclass(frozen=True)
class Result:
    """What a handler returned for a message, as JSON, or None if it returned nothing."""

    encoded: str | None


def outcomes_of(handler: Handler, received: list[Received | Bury]) -> list[object]:
    """Call the handler with all messages and return the outcome of each.

    If it raises, call it again for each message alone, so that only the bad ones fail.
    """
    outcomes: list[object] = list(received)
    good = [(at, each) for at, each in enumerate(received) if isinstance(each, Received)]
    try:
        answers = _answers(handler, [each for _, each in good])
    except Exception:  # noqa: BLE001 - it is raised again below, for its own message
        answers = [_answer_alone(handler, each) for _, each in good]
    for (at, _), answer in zip(good, answers, strict=True):
        outcomes[at] = answer
    return outcomes


def _answer_alone(handler: Handler, received: Received) -> object:
    try:
        return _answers(handler, [received])[0]
    except Exception as error:  # noqa: BLE001 - a handler may raise anything; `judge` decides
        return error


def _answers(handler: Handler, received: list[Received]) -> list[object]:
    returned = handler(received) if received else []
    if returned is None:
        return [Result(None)] * len(received)
    if not _is_list(returned) or len(returned) != len(received):
        raise InvalidType("handler", "must return None, or a list with one result for each message")
    return [_answer(each) for each in returned]


def _is_list(returned: object) -> bool:
    """Return whether these are results in an order; an array of pyarrow or numpy will do."""
    other = isinstance(returned, str | bytes | Mapping | AbstractSet)
    return isinstance(returned, Sized) and not other


def _answer(returned: object) -> object:
    if returned is None:
        return Result(None)
    outcome = as_raised(returned)
    if isinstance(outcome, BaseException):
        return outcome
    return Result(msgspec.json.encode(returned).decode())
