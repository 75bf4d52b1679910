"""`duequeue poll` fetches messages that are due, and prints them."""

import argparse
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from duequeue.cli.durations import duration
from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.facts import PAYLOAD, at, named
from duequeue.cli.numbers import counted, positive
from duequeue.cli.opening import add_queue, chosen_queue, open_found, place_of
from duequeue.cli.output import Output, add_output
from duequeue.cli.payloads import payload_facts
from duequeue.cli.when import stamp
from duequeue.delivery import Delivery

COLUMNS = (named("key"), at("due_at", "DUE"), named("attempt", is_number=True), PAYLOAD)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Fetch messages that are due, print them, and settle them. By default they go back into "
        "the queue at once, and the attempt counts."
    )
    add_queue(parser)
    parser.add_argument(
        "--limit",
        type=positive,
        default=1,
        metavar="N",
        help="fetch at most N (default: %(default)s)",
    )
    parser.add_argument(
        "--wait",
        type=duration,
        default=timedelta(0),
        metavar="DURATION",
        help="wait for a message that is due (default: do not wait)",
    )
    settle = parser.add_mutually_exclusive_group()
    settle.add_argument(
        "--ack", action="store_true", help="delete the messages once they are printed"
    )
    settle.add_argument(
        "--release", type=duration, metavar="DELAY", help="put them back, due after this delay"
    )
    settle.add_argument("--bury", metavar="REASON", help="bury them for this reason")
    settle.add_argument(
        "--hold",
        type=duration,
        metavar="LEASE",
        help="keep them leased for this long, after which they are due again",
    )
    add_output(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Fetch, print, settle."""
    output = Output(given)
    place = place_of(given)
    found = chosen_queue(given, place)
    with open_found(place, found, lease=given.hold) as queue:
        deliveries = queue.poll_many(given.limit, timeout=given.wait)
        if not deliveries:
            output.talk("no message is due")
            return ExitCode.NOTHING_FOUND
        try:
            output.items(_facts(deliveries, found.payload_type), COLUMNS)
            sys.stdout.flush()
        except BaseException:  # messages that nobody has read go back
            for delivery in deliveries:
                delivery.release()
            raise
        settle, done = _settling(given)
        won = sum(settle(delivery) for delivery in deliveries)
    output.talk(f"{counted(won, 'message')} {done}")
    if won < len(deliveries):
        lost = counted(len(deliveries) - won, "message")
        output.talk(f"{lost} not settled, because the lease had ended")
        return ExitCode.FAILED
    return ExitCode.DONE


def _settling(given: argparse.Namespace) -> tuple[Callable[[Delivery[bytes]], bool], str]:
    if given.ack:
        return Delivery.ack, "deleted"
    if given.bury is not None:
        return lambda delivery: delivery.bury(given.bury), "buried"
    if given.hold is not None:
        return lambda _: True, f"leased for {given.hold}"
    delay = given.release or timedelta(0)
    hint = "" if given.release is not None else "; pass --ack to delete what you fetch"
    return lambda delivery: delivery.release(delay), f"put back{hint}"


def _facts(deliveries: list[Delivery[bytes]], payload_type: str) -> Iterator[dict[str, Any]]:
    for delivery in deliveries:
        yield {
            "key": delivery.key,
            "due_at": stamp(delivery.due_at),
            "attempt": delivery.attempt,
            "lease_until": stamp(delivery.lease_until),
            "headers": delivery.headers or None,
            **payload_facts(delivery.payload, payload_type),
        }
