"""`duequeue pipeline deliver` handles messages on executors."""

import argparse
from typing import TYPE_CHECKING, Any

from duequeue.cli.address import add_url
from duequeue.cli.handler_path import load
from duequeue.cli.pipeline.running import Running, add_master, add_reset, run_job
from duequeue.defaults import JOB_BATCH
from duequeue.errors import InvalidArgument

if TYPE_CHECKING:
    from duequeue.pipeline.delivering.handling import Handler


def add_to(jobs: "argparse._SubParsersAction[Any]") -> None:
    """Add the command and its arguments."""
    parser = jobs.add_parser(
        "deliver",
        help="pass messages to a function on executors",
        description="Pass lists of messages to a function on executors, and write its results. A "
        "message that fails is released with backoff, or buried; the others go on. The next run "
        "continues from the checkpoint.",
    )
    parser.add_argument(
        "handler", metavar="module:function", help="the handler, which gets a list of messages"
    )
    add_url(parser)
    parser.add_argument("--queue", required=True, metavar="NAME", help="the queue's name")
    parser.add_argument(
        "--codec",
        default="json",
        help="the codec of the payloads: json, text or bytes (default: json)",
    )
    parser.add_argument(
        "--checkpoint",
        required=True,
        metavar="FOLDER",
        help="records where to continue; use the same folder each time",
    )
    results = parser.add_mutually_exclusive_group()
    results.add_argument(
        "--to", metavar="FOLDER", help="write the results to Parquet files in this folder"
    )
    results.add_argument("--to-queue", metavar="NAME", help="offer the results to this queue")
    parser.add_argument(
        "--to-url", metavar="URL", help="the database of --to-queue (default: that of --url)"
    )
    parser.add_argument(
        "--batch",
        type=int,
        default=JOB_BATCH,
        metavar="N",
        help=f"how many messages each call gets (default: {JOB_BATCH})",
    )
    parser.add_argument(
        "--max-attempts",
        type=int,
        metavar="N",
        help="bury a message that fails N times (default: no limit)",
    )
    parser.add_argument("--history", action="store_true", help="keep a row of each settled message")
    parser.add_argument(
        "--forever",
        action="store_true",
        help="run until Ctrl-C, instead of until no message is due",
    )
    add_reset(parser, "the last batch of the results")
    add_master(parser)
    parser.set_defaults(run=start)


def start(given: argparse.Namespace) -> int:
    """Find the handler, then start Spark and run the job."""
    if given.to_url is not None and given.to_queue is None:
        raise InvalidArgument("--to-url", "needs --to-queue, which names the queue for the results")
    handler = load(given.handler)
    return run_job(given, lambda job: run(given, handler, job), url_options=("url", "to_url"))


def run(given: argparse.Namespace, handler: "Handler", job: Running) -> str:
    """Deliver messages, and return what to print."""
    from duequeue.pipeline import ToQueue, deliver

    to_queue = ToQueue(given.to_url or given.url, given.to_queue) if given.to_queue else None
    done = deliver(
        job.spark,
        url=given.url,
        queue=given.queue,
        handler=handler,
        checkpoint=given.checkpoint,
        results=to_queue or given.to,
        batch=given.batch,
        max_attempts=given.max_attempts,
        forever=given.forever,
        reset_checkpoint=given.reset_checkpoint,
        progress=job.progress,
        codec=given.codec,
        history=str(given.history).lower(),
    )
    return f"{done.acked:,} acked, {done.released:,} released, {done.buried:,} buried"
