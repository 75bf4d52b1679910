"""`duequeue pipeline deliver`: messages handled on executors."""

import argparse
from typing import TYPE_CHECKING, Any

from duequeue.cli.address import add_url
from duequeue.cli.handler_path import load
from duequeue.cli.pipeline.running import Running, add_master, run_job

if TYPE_CHECKING:
    from duequeue.pipeline.delivering.handling import Handler


def add_to(jobs: "argparse._SubParsersAction[Any]") -> None:
    """Describe the command."""
    parser = jobs.add_parser(
        "deliver",
        help="hand messages to a function on executors",
        description="Hand lists of messages to a function on executors, and write what it "
        "returns. What fails is released with backoff, or buried; the rest goes on. Interrupted, "
        "it goes on from its checkpoint.",
    )
    parser.add_argument("handler", metavar="module:function", help="takes a list of messages")
    add_url(parser)
    parser.add_argument("--queue", required=True, help="the queue's name")
    parser.add_argument("--codec", default="json", help="of the payloads (json)")
    parser.add_argument("--checkpoint", required=True, metavar="FOLDER", help="the same each time")
    results = parser.add_mutually_exclusive_group()
    results.add_argument("--to", metavar="FOLDER", help="Parquet files for the results (nowhere)")
    results.add_argument("--to-queue", metavar="NAME", help="a queue for the results")
    parser.add_argument("--to-url", metavar="URL", help="of that queue's database (the same)")
    parser.add_argument("--batch", type=int, default=100, help="messages at a time (100)")
    parser.add_argument("--max-attempts", type=int, help="bury after so many (no limit)")
    parser.add_argument("--history", action="store_true", help="leave a row of each message")
    parser.add_argument("--forever", action="store_true", help="until Ctrl-C (until none is due)")
    add_master(parser)
    parser.set_defaults(run=start)


def start(given: argparse.Namespace) -> int:
    """Find the handler before Spark is started."""
    if given.to_url is not None and given.to_queue is None:
        raise ValueError("--to-url needs --to-queue, the queue for the results")
    handler = load(given.handler)
    return run_job(given, lambda job: run(given, handler, job), other_url=given.to_url)


def run(given: argparse.Namespace, handler: "Handler", job: Running) -> str:
    """Deliver, and count."""
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
        progress=job.progress,
        codec=given.codec,
        history=str(given.history).lower(),
    )
    return f"{done.acked:,} acked, {done.released:,} released, {done.buried:,} buried"
