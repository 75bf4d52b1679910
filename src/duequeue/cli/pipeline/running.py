"""What every job on Spark needs: a session, ears for signals, and a good end."""

import argparse
import logging
import re
import sys
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from duequeue.cli.orders import Order, Signals, listening_to_signals
from duequeue.cli.pipeline.progress_line import LineOfProgress
from duequeue.cli.terminal import Terminal
from duequeue.connect import absolute, bulk_backend_for
from duequeue.errors import MissingExtra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERRUPTED = 130
LOOK_SECONDS = 0.2
# The end of a traceback of ours or of Python's, or the beginning of one of Java's.
_REASON = re.compile(r"(?:duequeue\.[\w.]+|[A-Za-z]*Error|: [\w.$]+Exception): (.+)")


class Running(NamedTuple):
    """A job that runs."""

    spark: "SparkSession"
    progress: LineOfProgress


Job: TypeAlias = Callable[[Running], str]


def add_master(parser: argparse.ArgumentParser) -> None:
    """Let the job run elsewhere."""
    parser.add_argument("--master", help="of a Spark cluster (this machine)")
    add_settings(parser, "--conf", "of Spark, such as spark.executor.memory=4g")


def add_settings(parser: argparse.ArgumentParser, name: str, about: str) -> None:
    """Let settings be given, one at a time."""
    parser.add_argument(
        name,
        action="append",
        default=[],
        type=_setting,
        metavar="NAME=VALUE",
        help=f"a setting {about}; may be repeated",
    )


def run_job(given: argparse.Namespace, job: Job, *, other_url: str | None = None) -> int:
    """Run a job in a session of its own, and print what it says."""
    for url in (given.url, other_url):
        if url is not None:
            bulk_backend_for(absolute(url))  # says what is wrong with it, before Spark is started
    terminal = Terminal()
    terminal.print("starting Spark")
    spark = _session(given.master, dict(given.conf))
    running = Running(spark, LineOfProgress(terminal))
    with listening_to_signals() as signals:
        try:
            done = see_through(running, job, signals)
            if done is None:
                terminal.print("interrupted: nothing is lost, run it again to go on")
                return INTERRUPTED
            return tell(done, terminal)
        finally:
            spark.stop()


def see_through(running: Running, job: Job, signals: Signals) -> "Future[str] | None":
    """Wait for the end of a job; None if it was told to stop, and did not end well.

    It runs on a thread of its own, because a signal in the middle of a call to Java breaks it.
    """
    done: Future[str] = Future()

    def work() -> None:
        try:
            done.set_result(job(running))
        except BaseException as error:  # noqa: BLE001 - it is raised again where it is waited for
            done.set_exception(error)

    Thread(target=work, daemon=True).start()
    told = False
    while not done.done():
        order = signals.await_order(LOOK_SECONDS)
        if order is Order.STOP_NOW:
            return None
        if order is Order.STOP:
            told = True
            running.progress.stop()
            running.spark.sparkContext.setLogLevel("OFF")  # it would tell of each part
        if told:  # again and again: the job may have been about to ask Spark for something
            running.spark.sparkContext.cancelAllJobs()
    return None if told and done.exception() else done


def tell(done: "Future[str]", terminal: Terminal) -> int:
    """Print what a job says, or in one line why it failed."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        terminal.print(done.result())
    except (PySparkException, Py4JJavaError) as error:
        terminal.print(
            "failed: nothing is lost; mend what is told below, and run it again to go on"
        )
        print(f"duequeue: {reason(str(error))}", file=sys.stderr)
        return 1
    return 0


def reason(error: str) -> str:
    """Find the line that says why, in what Spark tells of an error on an executor or in Java."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    said = [found[1] for line in lines if (found := _REASON.match(line))]
    return said[-1] if said else lines[0]


def _session(master: str | None, config: dict[str, str]) -> "SparkSession":
    try:
        from pyspark.logger import PySparkLogger

        from duequeue.spark.session import cluster_session, local_session
    except ImportError as error:
        raise MissingExtra("the pipeline needs Spark: pip install 'duequeue[spark]'") from error
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    config = {"spark.log.level": "OFF", **config}  # what matters is in the error
    # Spark's own bar would overwrite our line.
    quiet = {"spark.ui.showConsoleProgress": "false", **config}
    try:
        return cluster_session(master, config=quiet) if master else local_session(config=quiet)
    except Exception as error:
        if isinstance(error, MissingExtra):
            raise
        what = reason(str(error))
        raise ValueError(f"Spark does not start, look at --master and --conf: {what}") from error


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value
