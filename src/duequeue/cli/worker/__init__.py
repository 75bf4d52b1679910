"""`duequeue worker` passes messages to handlers until it is stopped."""

import argparse
from functools import partial

from duequeue.backoff import Backoff
from duequeue.cli.address import URL_VARIABLE
from duequeue.cli.durations import add_duration, backoff, backoff_text, duration
from duequeue.cli.log_set_up import add_log_options
from duequeue.cli.worker.alone import prepared, work_alone
from duequeue.cli.worker.crew import work_together
from duequeue.cli.worker.settings import WorkerSettings
from duequeue.codec import CODECS
from duequeue.defaults import (
    BATCH,
    CONCURRENCY,
    CONSUMER_LEASE,
    CONSUMER_MAX_ATTEMPTS,
    GRACE,
    HOST,
    POLL_INTERVAL,
)
from duequeue.durations import duration_text
from duequeue.errors import InvalidArgument
from duequeue.flows.arguments import DEFAULT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Pass messages to functions when they are due. A function that is decorated "
        "with @queue.handler has its own queue and options, which the arguments below override. "
        "On SIGTERM or Ctrl-C, the worker lets running handlers finish and gives the other "
        "messages back; a second signal stops it at once."
    )
    parser.add_argument(
        "handlers",
        metavar="module[:function]",
        nargs="+",
        help="a handler, which is a def or an async def, or a module whose decorated handlers "
        "are all served",
    )
    _add_queue(parser)
    _add_consumer(parser)
    _add_process(parser)
    parser.set_defaults(run=partial(run, parser))


def _add_queue(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--url",
        help=f"the database, such as postgresql://host/name (default: the handler's own, "
        f"or ${URL_VARIABLE})",
    )
    parser.add_argument("--queue", metavar="NAME", help="the queue's name")
    parser.add_argument(
        "--codec",
        type=_codec,
        metavar="CODEC",
        help="the codec of the payloads: json, text, bytes, or module:Class for a payload type or "
        "a codec (default: the handler's own, or json)",
    )
    parser.add_argument(
        "--poll-interval",
        type=duration,
        metavar="DURATION",
        help="the time between regular looks at the database "
        f"(default: {duration_text(POLL_INTERVAL)})",
    )
    parser.add_argument(
        "--history", action="store_true", default=None, help="keep a row of each settled message"
    )


def _add_consumer(parser: argparse.ArgumentParser) -> None:
    for name, about in (
        (
            "--concurrency",
            f"how many calls of each handler run at a time in a process (default: {CONCURRENCY})",
        ),
        ("--batch", f"how many messages each process fetches ahead (default: {BATCH})"),
    ):
        parser.add_argument(name, type=int, metavar="N", help=about)
    parser.add_argument(
        "--max-attempts",
        type=_max_attempts,
        default=DEFAULT,
        metavar="N",
        help="bury a message that fails N times, or `none` for no limit "
        f"(default: the queue's own, or {CONSUMER_MAX_ATTEMPTS})",
    )
    parser.add_argument(
        "--backoff",
        type=backoff,
        metavar="FIRST:LONGEST:FACTOR",
        help="the delay after the first failure, the longest delay, and by which factor it grows "
        f"(default: {backoff_text(Backoff())})",
    )
    parser.add_argument(
        "--lease",
        type=duration,
        metavar="DURATION",
        help="how long the messages of a dead worker wait for their redelivery, such as 5m "
        f"(default: the queue's own, or {duration_text(CONSUMER_LEASE)})",
    )


def _add_process(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--processes",
        type=int,
        default=1,
        metavar="N",
        help="how many processes (default: %(default)s)",
    )
    add_duration(
        parser,
        "--grace",
        GRACE,
        "how long handlers may go on after the first signal",
    )
    add_log_options(parser)
    parser.add_argument(
        "--log-events",
        action="store_true",
        help="log each handled message at level INFO, and polls and offers at level DEBUG",
    )
    parser.add_argument("--quiet", action="store_true", help="print no status line")
    parser.add_argument(
        "--health-port",
        type=_health,
        metavar="[HOST:]PORT",
        help="answer HTTP requests here with 200 while the worker works, and otherwise with 503 "
        f"(default host: {HOST})",
    )


def run(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """Check the arguments, then work until stopped."""
    if given.processes < 1:
        raise InvalidArgument("processes", f"must be a whole number above 0, not {given.processes}")
    for place in given.handlers:
        if "://" in place:
            parser.error(f"unrecognized arguments: {place}")
    if given.queue is not None and "://" in given.queue:  # it may hold a password
        raise InvalidArgument("queue", "must be a name, not a URL; give the database with --url")
    settings = WorkerSettings(
        handlers=tuple(given.handlers),
        url=given.url,
        queue=given.queue,
        codec=given.codec,
        concurrency=given.concurrency,
        batch=given.batch,
        max_attempts=given.max_attempts,
        backoff=given.backoff,
        lease=given.lease,
        poll_interval=given.poll_interval,
        history=given.history,
        grace=given.grace,
        log_level=given.log_level,
        log_format=given.log_format,
        log_events=given.log_events,
        quiet=given.quiet,
        health=given.health_port,
    )
    services = prepared(settings)
    if given.processes == 1:
        return work_alone(settings, services)
    return work_together(settings, services, given.processes)


def _codec(text: str) -> str:
    if text not in CODECS and ":" not in text:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither json, text, bytes nor of the form module:Class"
        )
    return text


def _max_attempts(text: str) -> int | None:
    if text.lower() == "none":
        return None
    try:
        return int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor `none`") from error


def _health(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    try:
        number = int(port)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port or host:port") from error
    if not 0 <= number < 2**16:
        raise argparse.ArgumentTypeError(f"{number} is not a port")
    return host.strip("[]") or HOST, number
