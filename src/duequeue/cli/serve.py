"""`duequeue serve` answers HTTP requests until it is stopped."""

import argparse
import os

from duequeue.cli.address import URL_VARIABLE
from duequeue.cli.config import FILE
from duequeue.cli.durations import add_duration, duration
from duequeue.cli.log_set_up import add_log_options
from duequeue.cli.push_options import add_push_options
from duequeue.cli.token import TOKEN_FILE_VARIABLE
from duequeue.defaults import CONSUMER_LEASE, DRAIN, HISTORY, HOST, POLL_INTERVAL, PORT
from duequeue.durations import duration_text
from duequeue.errors import MissingExtra

DEFAULT_URL = "sqlite:///duequeue.db"
# For proxies that hear of the stop itself, as in Kubernetes; those that probe may need more.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Serve queues over HTTP. On SIGTERM or Ctrl-C, requests that wait for messages get an "
        "empty answer, and /readyz says 503. After the time of --drain, requests in flight finish, "
        "and the server ends; a second signal ends it at once."
    )
    parser.add_argument(
        "--url",
        help=f"the store (default: ${URL_VARIABLE}, url in {FILE}, or {DEFAULT_URL} in the current "
        "folder)",
    )
    parser.add_argument("--host", help=f"where to listen (default: {HOST})")
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--socket",
        metavar="PATH",
        help="listen on a unix socket instead, which only this user can use unless there is a "
        "--token-file",
    )
    place.add_argument(
        "--port",
        type=_port,
        default=PORT,
        metavar="N",
        help=f"the port, or 0 for any free one (default: {PORT})",
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        default=os.environ.get(TOKEN_FILE_VARIABLE),
        help="the tokens that `duequeue token create` made; without this, the server makes a token "
        f"for the clients of this user on this machine (default: ${TOKEN_FILE_VARIABLE})",
    )
    parser.add_argument(
        "--dev",
        action="store_true",
        help="keep messages in memory unless --url names a store, need no token on this machine, "
        "and let POST /v1/clock:advance move the time",
    )
    _add_queue(parser)
    _add_server(parser)
    parser.add_argument(
        "--push",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="post messages to endpoints too; several servers share the work (default: --push)",
    )
    add_push_options(parser)
    parser.set_defaults(run=run)


def _add_queue(parser: argparse.ArgumentParser) -> None:
    add_duration(
        parser,
        "--lease",
        CONSUMER_LEASE,
        "how long a poll leases messages unless it says otherwise",
    )
    add_duration(
        parser,
        "--poll-interval",
        POLL_INTERVAL,
        "the time between regular looks at the store",
    )
    parser.add_argument(
        "--max-attempts",
        type=int,
        metavar="N",
        help="bury a message instead of delivering it more than N times (default: no limit)",
    )
    add_duration(
        parser,
        "--keep-history",
        HISTORY,
        "for how long to keep a row of each settled message; 0 keeps none",
    )
    parser.add_argument(
        "--create",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="let offers, crons and endpoints make queues that do not exist; with --no-create, all "
        "requests about such queues are refused (default: --create)",
    )


def _add_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tls-cert", metavar="FILE", help="the certificate, for HTTPS")
    parser.add_argument("--tls-key", metavar="FILE", help="the private key of the certificate")
    parser.add_argument(
        "--drain",
        type=duration,
        metavar="DURATION",
        help="how long to go on answering after the first signal, while /readyz says 503 (default: "
        f"{duration_text(DRAIN)}, or 0 with --dev)",
    )
    parser.add_argument("--access-log", action="store_true", help="log each request")
    add_log_options(parser)


def run(given: argparse.Namespace) -> int:
    """Check the arguments, then serve until stopped."""
    try:
        from duequeue.cli.serving import serve_until_stopped
    except ImportError as error:
        raise MissingExtra("serve needs more packages: pip install 'duequeue[server]'") from error
    serve_until_stopped(given)
    return 0


def _port(text: str) -> int:
    try:
        number = int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port") from error
    if not 0 <= number < 2**16:
        raise argparse.ArgumentTypeError(f"{number} is not a port")
    return number
