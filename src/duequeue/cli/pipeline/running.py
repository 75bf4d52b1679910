"""What every job has in common: a Spark session, a line that moves on, a summary."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from duequeue.cli.pipeline.telling import Teller
from duequeue.cli.terminal import Terminal
from duequeue.errors import DueQueueError, MissingExtra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Job(Protocol):
    """A module with one job."""

    __name__: str
    HELP: str
    DESCRIPTION: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Describe what it is told."""

    def run(self, spark: "SparkSession", given: argparse.Namespace, teller: Teller) -> list[str]:
        """Do it, and return the lines of a summary."""


def add_spark(parser: argparse.ArgumentParser) -> None:
    """Let a job run elsewhere than here."""
    spark = parser.add_argument_group("Spark")
    spark.add_argument(
        "--master", help="a cluster, for example spark://host:7077 or yarn (this machine)"
    )
    spark.add_argument(
        "--conf",
        action="append",
        default=[],
        type=setting,
        metavar="NAME=VALUE",
        help="a setting of Spark, such as spark.executor.memory=4g; may be repeated",
    )


def setting(text: str) -> tuple[str, str]:
    """Read `name=value`."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value


def run_job(job: Job, name: str, given: argparse.Namespace) -> None:
    """Start Spark, run the job and print its summary."""
    terminal = Terminal()
    teller = Teller(terminal)
    teller.step("starting Spark")
    with _session(name, given) as spark, _spark_errors():
        summary = job.run(spark, given, teller)
    for line in summary:
        terminal.print(line)


@contextmanager
def _session(name: str, given: argparse.Namespace) -> "Iterator[SparkSession]":
    try:
        from duequeue.spark.session import open_session
    except ImportError as error:
        raise MissingExtra("the pipeline needs Spark: pip install 'duequeue[spark]'") from error
    config = {"spark.log.level": "OFF", **dict(given.conf)}  # what matters is in the error
    spark = open_session(f"duequeue {name}", master=given.master, config=config)
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def _spark_errors() -> Iterator[None]:
    """Tell what went wrong on an executor without the pages that Spark says about it."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raise DueQueueError(_gist(str(error))) from error


def _gist(text: str) -> str:
    """Return the last error that Python told of, else the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    python = [line for line in lines if line.partition(":")[0].endswith(("Error", "Unavailable"))]
    return (python or lines)[-1 if python else 0]
