"""What every job on Spark needs: a session, a line of progress, and a good end."""

import argparse
import sys
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from duequeue.cli.terminal import Terminal
from duequeue.errors import MissingExtra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERRUPTED = 130
PLAIN_INTERVAL_SECONDS = 10.0


class LineOfProgress:
    """Shows how far a job is: always fresh on a terminal, elsewhere now and then."""

    def __init__(self, terminal: Terminal, clock: Callable[[], float] = monotonic) -> None:
        self._terminal = terminal
        self._clock = clock
        self._shown_at = clock()

    def step(self, what: str) -> None:
        """Say what begins."""
        if self._terminal.live:
            self._terminal.show(what)
        else:
            self._print(what)

    def at(self, what: str, done: int, parts: int) -> None:
        """Say how far it is."""
        self.still(f"{what}: {done:,} of {parts:,} parts done")

    def still(self, line: str) -> None:
        """Say something more about what has begun."""
        if self._terminal.live:
            self._terminal.show(line)
        elif self._clock() - self._shown_at >= PLAIN_INTERVAL_SECONDS:
            self._print(line)

    def _print(self, line: str) -> None:
        self._shown_at = self._clock()
        self._terminal.print(line)


class Running(NamedTuple):
    """A job that runs."""

    spark: "SparkSession"
    progress: LineOfProgress


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


def run_job(given: argparse.Namespace, job: Callable[[Running], str]) -> int:
    """Run a job in a session of its own, and print what it says."""
    terminal = Terminal()
    progress = LineOfProgress(terminal)
    terminal.print("starting Spark")
    spark = _session(given.master, dict(given.conf))
    from pyspark.errors import PySparkException

    try:
        terminal.print(job(Running(spark, progress)))
    except KeyboardInterrupt:
        terminal.print("interrupted: nothing is lost, run it again to go on")
        return INTERRUPTED
    except PySparkException as error:
        terminal.print("failed: nothing is lost, run it again to go on")
        print(f"duequeue: {reason(str(error))}", file=sys.stderr)
        return 1
    finally:
        spark.stop()
    return 0


def reason(error: str) -> str:
    """Find the line that says why, in what Spark tells of an error on an executor."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("duequeue.")]
    return ours[-1].partition(": ")[2] if ours else lines[0]


def _session(master: str | None, config: dict[str, str]) -> "SparkSession":
    try:
        from duequeue.spark.session import cluster_session, local_session
    except ImportError as error:
        raise MissingExtra("the pipeline needs Spark: pip install 'duequeue[spark]'") from error
    config = {"spark.log.level": "OFF", **config}  # what matters is in the error
    return cluster_session(master, config=config) if master else local_session(config=config)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value
