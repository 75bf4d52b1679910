"""`duequeue doctor` examines a database and its queues, and gives advice."""

import argparse
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from time import perf_counter
from typing import TypeVar

from duequeue.cli.durations import add_duration
from duequeue.cli.examining_queues import LATE, examine_queue
from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.opening import RETRY, Place, add_place, open_found, place_of
from duequeue.cli.output import GREEN, RED, YELLOW, Output, add_output, paint, printable
from duequeue.cli.when import now
from duequeue.drive import running
from duequeue.errors import SchemaError, StoreError, StoreUnavailable
from duequeue.instants import to_millis
from duequeue.port.examining import Examinable, Finding, Level
from duequeue.port.store import Operation, Session

T = TypeVar("T")

COLOURS = {Level.OK: GREEN, Level.ADVICE: YELLOW, Level.PROBLEM: RED}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Examine a database and its queues, and give advice. Nothing is changed. The exit status "
        f"is {ExitCode.PROBLEM.value} if there is a problem, {ExitCode.UNAVAILABLE.value} if the "
        "database cannot be reached, and 0 otherwise."
    )
    add_place(parser)
    add_duration(
        parser,
        "--late",
        LATE,
        "how long a message may be due before that is worth advice",
    )
    add_output(parser, "print only advice and problems")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Examine, print, judge."""
    findings = [*_examined(place_of(given), given.late)]
    if given.json or given.jsonl:
        Output(given).items((_facts(each) for each in findings), (), key="about")
    else:
        _print([each for each in findings if each.level is not Level.OK or not given.quiet])
    worst = any(each.level is Level.PROBLEM for each in findings)
    return ExitCode.PROBLEM if worst else ExitCode.DONE


def _examined(place: Place, late: timedelta) -> Iterator[Finding]:
    yield from _examined_store(place)
    try:
        found = place.queues()
    except SchemaError:
        return  # the store has reported it
    for each in found:
        try:
            with open_found(place, each) as queue:
                yield from examine_queue(queue, now(), late)
        except StoreUnavailable as error:  # although the store has answered
            reason = " ".join(str(error).split())
            advice = "See the findings about the store."
            yield Finding(Level.PROBLEM, f"queue {each.name}", reason, advice)
            return
        except StoreError as error:
            reason = " ".join(str(error).split())
            advice = "Run this again with a login that may read the queue."
            yield Finding(Level.ADVICE, f"queue {each.name}", reason, advice)


def _examined_store(place: Place) -> Iterator[Finding]:
    backend = place.backend()
    session = backend.read_only_session()
    try:
        with suppress(SchemaError):  # the examination reports it
            # The time to connect would otherwise look like a difference of the clocks.
            _run(session, backend.kinds)
        if not isinstance(backend, Examinable):
            yield Finding(Level.OK, "connection", f"{backend.address} answers.")
            return
        began = perf_counter()
        # Each try reads the clock when it is connected, so that nothing before it counts.
        findings = _run(session, lambda: backend.examine(to_millis(now())))
        millis = (perf_counter() - began) * 1000
    finally:
        session.close()
    text = f"{backend.address} answers; the examination took {millis:,.0f} ms."
    yield Finding(Level.OK, "connection", text)
    yield from findings


def _run(session: Session, operation: Operation[T]) -> T:
    return running.run(session, operation, RETRY)


def _facts(finding: Finding) -> dict[str, str | None]:
    return {
        "level": finding.level.value,
        "about": finding.about,
        "text": finding.text,
        "advice": finding.advice or None,
    }


def _print(findings: list[Finding]) -> None:
    width = max((len(finding.about) for finding in findings), default=0)
    for finding in findings:
        level = paint(f"{finding.level.value:<7}", COLOURS[finding.level])
        print(f"{level}  {finding.about:<{width}}  {printable(finding.text)}")
        if finding.advice:
            print(f"{'':<{7 + 2 + width + 2}}{printable(finding.advice)}")
