"""`duequeue pipeline ingest` offers the rows of files or tables to a queue."""

import argparse
from typing import Any

from duequeue.cli.address import add_url
from duequeue.cli.pipeline.running import Running, add_master, add_settings, run_job


def add_to(jobs: "argparse._SubParsersAction[Any]") -> None:
    """Add the command and its arguments."""
    parser = jobs.add_parser(
        "ingest",
        help="offer the rows of CSV, JSON or Parquet files, or of a table",
        description="Offer the rows of files or of a table as messages. Rows that cannot become "
        "messages are written to the folder of --rejects, with the reason; without that option, a "
        "single such row is an error. A second run leaves unchanged messages alone.",
    )
    parser.add_argument("source", help="a path, which may contain *, or the name of a table")
    add_url(parser)
    parser.add_argument("--queue", required=True, metavar="NAME", help="the queue's name")
    parser.add_argument("--codec", default="json", help="the codec of the payloads (default: json)")
    parser.add_argument(
        "--format", help="csv, json, parquet, …, or table (default: by the ending of the path)"
    )
    parser.add_argument(
        "--key", default="key", metavar="COLUMN", help="the column of the keys (default: key)"
    )
    parser.add_argument(
        "--due",
        default="due_at",
        metavar="COLUMN",
        help="the column of the due times (default: due_at)",
    )
    parser.add_argument(
        "--due-format",
        metavar="PATTERN",
        help="the format of due times in text, such as dd.MM.yyyy (default: ISO 8601)",
    )
    parser.add_argument(
        "--payload",
        action="append",
        default=[],
        metavar="COLUMN",
        help="a column of the payload; may be repeated. A single column of text is taken as it is, "
        "several become a JSON object (default: all other columns)",
    )
    parser.add_argument(
        "--headers",
        metavar="COLUMN",
        help="the column of the headers, which are maps (default: none)",
    )
    parser.add_argument(
        "--mode",
        choices=("upsert", "ignore"),
        default="upsert",
        help="update messages whose rows have changed, or leave them alone (default: upsert)",
    )
    parser.add_argument(
        "--rejects", metavar="FOLDER", help="the folder for rows that cannot become messages"
    )
    add_settings(parser, "--option", "of Spark's reader, such as inferSchema=true")
    add_master(parser)
    parser.set_defaults(run=lambda given: run_job(given, lambda job: run(given, job)))


def run(given: argparse.Namespace, job: Running) -> str:
    """Ingest the rows, and return what to print."""
    from duequeue.pipeline import Columns, ingest
    from duequeue.pipeline.progress import counted

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
    outcomes = f"{created:,} created, {updated:,} updated, {ignored:,} ignored"
    lines = [f"{counted(done.rows, 'row')}: {outcomes}"]
    if done.rejects is not None:
        lines.append(f"{sum(done.rejected.values()):,} rejected, in {done.rejects}")
        lines += [f"  {reason}: {count:,}" for reason, count in sorted(done.rejected.items())]
    return "\n".join(lines)
