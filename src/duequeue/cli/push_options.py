"""The arguments about callbacks that `push` and `serve` have in common."""

import argparse
import os
import resource
from typing import TYPE_CHECKING

from duequeue.cli.durations import add_duration
from duequeue.defaults import CALLS, GRACE

if TYPE_CHECKING:
    from duequeue.callbacks.pushing import PushSettings

PROXY_VARIABLE = "DUEQUEUE_PROXY"
POLICIES = ("metadata", "public", "off")


def add_push_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--guard",
        choices=POLICIES,
        help="where callbacks may not go: metadata refuses link-local addresses and the metadata "
        "services of clouds, public refuses all private addresses, off refuses nothing "
        "(default: public with a file of tokens, otherwise metadata)",
    )
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="NETWORK",
        help="a network that is allowed in spite of --guard, such as 10.1.0.0/16; may be repeated",
    )
    parser.add_argument(
        "--deny",
        action="append",
        default=[],
        metavar="NETWORK",
        help="a network that is always refused; may be repeated",
    )
    parser.add_argument(
        "--https-only", action="store_true", help="refuse callbacks to http:// addresses"
    )
    parser.add_argument(
        "--proxy",
        metavar="URL",
        default=os.environ.get(PROXY_VARIABLE),
        help=f"the proxy that callbacks go through (default: ${PROXY_VARIABLE})",
    )
    parser.add_argument(
        "--calls",
        type=int,
        default=CALLS,
        metavar="N",
        help=f"how many callbacks may run at a time in this process (default: {CALLS})",
    )
    add_duration(
        parser,
        "--grace",
        GRACE,
        "how long running callbacks may take to finish after a stop",
    )


def push_settings(given: argparse.Namespace, token_file: str | None) -> "PushSettings":
    """Return what the arguments say, or raise."""
    from duequeue.callbacks.guard import Guard, default_policy
    from duequeue.callbacks.pushing import PushSettings

    policy = given.guard or default_policy(has_tokens=token_file is not None)
    guard = Guard(policy, given.allow, given.deny, https_only=given.https_only)
    return PushSettings(guard, given.proxy, given.calls, given.grace)


def raise_file_limit() -> None:
    """Allow as many open files as the system permits, because each call needs one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
