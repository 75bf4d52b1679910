"""How every job on Spark is run: it gets a session, can be stopped, and prints its result."""

import argparse
import logging
import re
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from duequeue.backends import absolute
from duequeue.bulk import bulk_backend_for
from duequeue.cli.pipeline.progress_line import ProgressLine
from duequeue.cli.stop_requests import Signals, StopRequest, listening_to_signals
from duequeue.cli.terminal import Terminal
from duequeue.errors import InvalidArgument, MissingExtra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERRUPTED = 130
LOOK_SECONDS = 0.2
# The last line of a Python traceback, or the first line of a Java one.
_REASON = re.compile(r"(?:duequeue\.[\w.]+|[A-Za-z]*Error|: [\w.$]+Exception): (.+)")
_VERSIONS = re.compile(r"\[PYTHON_VERSION_MISMATCH\] .*?(\d+\.\d+).*?(\d+\.\d+)")


class Running(NamedTuple):
    """A running job's session and progress line."""

    spark: "SparkSession"
    progress: ProgressLine


Job: TypeAlias = Callable[[Running], str]


def add_master(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that choose and set up the Spark session."""
    parser.add_argument(
        "--master",
        help="the master of a Spark cluster, or sc://host:port for a server of Spark Connect "
        "(default: run on this machine)",
    )
    add_settings(parser, "--conf", "of Spark, such as spark.executor.memory=4g")


def add_reset(parser: argparse.ArgumentParser, last: str) -> None:
    """Add the way out of a damaged checkpoint, which goes on after `last`."""
    parser.add_argument(
        "--reset-checkpoint",
        action="store_true",
        help=f"begin a new checkpoint after {last}, if the old one is damaged or lost; messages "
        "that were not acked come again",
    )


def add_settings(parser: argparse.ArgumentParser, name: str, about: str) -> None:
    """Add an argument that takes one setting and may be repeated."""
    parser.add_argument(
        name,
        action="append",
        default=[],
        type=_setting,
        metavar="NAME=VALUE",
        help=f"a setting {about}; may be repeated",
    )


def run_job(given: argparse.Namespace, job: Job, *, url_options: Sequence[str] = ("url",)) -> int:
    """Check the URLs, run a job in its own session, and print its result."""
    for option in url_options:
        _check_url(option, getattr(given, option))
    terminal = Terminal()
    terminal.print("starting Spark")
    spark = _session(given.master, dict(given.conf))
    running = Running(spark, ProgressLine(terminal))
    with listening_to_signals() as signals:
        try:
            done = run_until_done(running, job, signals)
            if done is None:
                terminal.print(
                    "interrupted, but nothing is lost. Run the command again to continue"
                )
                return INTERRUPTED
            return print_result(done, terminal)
        finally:
            spark.stop()


def _check_url(option: str, url: str | None) -> None:
    """Raise before Spark starts if a URL is wrong, and name the option."""
    try:
        if url is not None:
            bulk_backend_for(absolute(url))
    except ValueError as error:
        raise InvalidArgument(option, text=f"--{option.replace('_', '-')}: {error}") from error


def run_until_done(running: Running, job: Job, signals: Signals) -> "Future[str] | None":
    """Run a job to its end; return None if it was stopped before that.

    It runs on its own thread, because a signal would break a call to Java.
    """
    from duequeue.spark.session import interrupt

    done: Future[str] = Future()

    def work() -> None:
        try:
            done.set_result(job(running))
        except BaseException as error:  # noqa: BLE001 - the waiting thread raises it again
            done.set_exception(error)

    Thread(target=work, daemon=True).start()
    stopping = False
    while not done.done():
        request = signals.await_request(LOOK_SECONDS)
        if request is StopRequest.STOP_NOW:
            return None
        if request is StopRequest.STOP:
            stopping = True
            running.progress.stop()
        if stopping:  # repeatedly, because the job may have been about to start something on Spark
            interrupt(running.spark)
    return None if stopping and done.exception() else done


def print_result(done: "Future[str]", terminal: Terminal) -> int:
    """Print the result of a job, or the reason for its failure in one line."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        terminal.print(done.result())
    except (PySparkException, Py4JJavaError) as error:
        terminal.print(
            "failed, but nothing is lost. "
            "Fix the error below, then run the command again to continue"
        )
        print(f"duequeue: {reason(str(error))}", file=sys.stderr)
        return 1
    return 0


def reason(error: str) -> str:
    """Find the line with the reason in an error of Spark, which has whole tracebacks in it."""
    if versions := _VERSIONS.search(error):
        return (
            f"the workers have Python {versions[1]} and the driver has Python {versions[2]}: "
            "set PYSPARK_PYTHON to a Python of the driver's version"
        )
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    said = [found[1] for line in lines if (found := _REASON.match(line))]
    return said[-1] if said else lines[0]


def _session(master: str | None, config: dict[str, str]) -> "SparkSession":
    try:
        from pyspark.logger import PySparkLogger

        from duequeue.spark.session import CONNECT, cluster_session, local_session
    except ImportError as error:
        raise MissingExtra("the pipeline needs Spark: pip install 'duequeue[spark]'") from error
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    # The error itself says what went wrong, and Spark's own progress bar would overwrite our line.
    quiet = {"spark.log.level": "OFF", "spark.ui.showConsoleProgress": "false", **config}
    try:
        if master is None:
            return local_session(config=quiet)
        return cluster_session(master, config=config if master.startswith(CONNECT) else quiet)
    except Exception as error:
        if isinstance(error, MissingExtra):
            raise
        why = reason(str(error))
        raise InvalidArgument(
            "--master", text=f"Spark did not start ({why}): check --master and --conf"
        ) from error


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} does not have the form NAME=VALUE")
    return name, value
