"""`duequeue pipeline ingest`: files or tables into a queue."""

import argparse
from typing import Any

from duequeue.cli.address import add_url
from duequeue.cli.pipeline.running import Running, add_master, add_settings, run_job


def add_to(jobs: "argparse._SubParsersAction[Any]") -> None:
    """Describe the command."""
    parser = jobs.add_parser(
        "ingest",
        help="offer the rows of CSV, JSON, Parquet or a table",
        description="Offer the rows of files or of a table as messages. Rows that cannot be "
        "messages are written to a folder of their own, with the reason; without --rejects, one "
        "of them is an error. Run twice, it finds its messages there and leaves them alone.",
    )
    parser.add_argument("source", help="a path, with * if need be, or the name of a table")
    add_url(parser)
    parser.add_argument("--queue", required=True, help="the queue's name")
    parser.add_argument("--codec", default="json", help="of the payloads (json)")
    parser.add_argument("--format", help="csv, json, parquet, …, or table (by the path's ending)")
    parser.add_argument("--key", default="key", metavar="COLUMN", help="of the keys (key)")
    parser.add_argument("--due", default="due_at", metavar="COLUMN", help="of the times (due_at)")
    parser.add_argument("--due-format", metavar="PATTERN", help="such as dd.MM.yyyy (ISO 8601)")
    parser.add_argument(
        "--payload",
        action="append",
        default=[],
        metavar="COLUMN",
        help="one column as it is, or several as a JSON object (all others); may be repeated",
    )
    parser.add_argument("--headers", metavar="COLUMN", help="of the headers (none)")
    parser.add_argument(
        "--mode",
        choices=("upsert", "ignore"),
        default="upsert",
        help="update messages whose rows have changed, or leave them alone (upsert)",
    )
    parser.add_argument("--rejects", metavar="FOLDER", help="for rows that cannot be messages")
    add_settings(parser, "--option", "of Spark's reader, such as sep=; or inferSchema=true")
    add_master(parser)
    parser.set_defaults(run=lambda given: run_job(given, lambda job: run(given, job)))


def run(given: argparse.Namespace, job: Running) -> str:
    """Ingest, and count."""
    from duequeue.pipeline import Columns, ingest

    columns = Columns(
        key=given.key,
        due_at=given.due,
        payload=tuple(given.payload),
        headers=given.headers,
        due_format=given.due_format,
    )
    done = ingest(
        job.spark,
        given.source,
        url=given.url,
        queue=given.queue,
        form=given.format,
        columns=columns,
        rejects=given.rejects,
        reader_options=dict(given.option),
        progress=job.progress,
        codec=given.codec,
        mode=given.mode,
    )
    created, updated, ignored = done.offered
    lines = [f"{done.rows:,} rows: {created:,} created, {updated:,} updated, {ignored:,} ignored"]
    if done.rejects is not None:
        lines.append(f"{sum(done.rejected.values()):,} rejected, in {done.rejects}")
        lines += [f"  {reason}: {count:,}" for reason, count in sorted(done.rejected.items())]
    return "\n".join(lines)
