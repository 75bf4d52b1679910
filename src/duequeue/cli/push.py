"""`duequeue push` posts messages to endpoints until it is stopped."""

import argparse
import asyncio
import os
from datetime import timedelta
from typing import TYPE_CHECKING

from duequeue.cli.address import add_url
from duequeue.cli.durations import add_duration
from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.log_set_up import add_log_options, set_up_log
from duequeue.cli.push_options import add_push_options, push_settings, raise_file_limit
from duequeue.cli.token import TOKEN_FILE_VARIABLE
from duequeue.clock import SystemClock
from duequeue.defaults import HISTORY, POLL_INTERVAL
from duequeue.errors import InvalidArgument, MissingExtra
from duequeue.process.garbage import collect_seldom
from duequeue.process.stop_signals import answered_in_the_loop_by
from duequeue.retention import Retention

if TYPE_CHECKING:
    from duequeue.callbacks.pushing import Push, PushSettings
    from duequeue.parts import QueueSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Post the messages of queues that have endpoints, as they fall due. Any number of these "
        "processes share the work. `duequeue serve` does the same unless it has --no-push. "
        "After SIGTERM or Ctrl-C, running callbacks have the time of --grace to finish; a second "
        "signal ends them at once."
    )
    add_url(parser)
    add_push_options(parser)
    add_duration(
        parser,
        "--poll-interval",
        POLL_INTERVAL,
        "the time between regular looks at the database",
    )
    add_duration(
        parser,
        "--keep-history",
        HISTORY,
        "for how long to keep a row of each settled message; 0 keeps none",
    )
    add_log_options(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Check the arguments, and push until the process is stopped."""
    set_up_log(given.log_level, given.log_format)
    if given.url.lower().startswith("http"):
        raise InvalidArgument(
            "url",
            "must be that of the database itself, because a server never hands out the "
            "secrets that sign callbacks; `duequeue serve` pushes by itself",
        )
    if given.url.lower().startswith("memory:"):
        raise InvalidArgument(
            "url", "must not be memory:, because other processes cannot offer to it"
        )
    try:
        import uvloop

        from duequeue.parts import QueueSettings

        settings = push_settings(given, os.environ.get(TOKEN_FILE_VARIABLE))
    except ImportError as error:
        raise MissingExtra("push needs more packages: pip install 'duequeue[callbacks]'") from error
    keep: timedelta = given.keep_history
    store = QueueSettings(
        given.url,
        SystemClock(),
        poll_interval=given.poll_interval,
        history=bool(keep),
        retention=Retention(history=keep) if keep else None,
    )
    raise_file_limit()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_push(settings, store))
    return ExitCode.DONE


async def _push(settings: "PushSettings", store: "QueueSettings") -> None:
    stopped = asyncio.Event()
    running: list[Push] = []

    def stop() -> None:
        if stopped.is_set():
            for push in running:
                push.hurry()
        stopped.set()

    with answered_in_the_loop_by(stop):
        async with settings.running(store) as push:
            running.append(push)
            collect_seldom()
            print("pushing", flush=True)
            await stopped.wait()
