"""Take a week of messages from offer to report: `python -m bench.retention [--messages N]`."""

import argparse
import shutil
import signal
import tempfile
from functools import partial
from pathlib import Path
from time import monotonic

from bench.machine import describe
from bench.publish import DOCS, put_between, report_folder
from bench.reminders import PARTS
from bench.retention.costs import Costs
from bench.retention.full_scale import A_WEEK, DAYS, SHARE
from bench.retention.plot import draw
from bench.retention.tables import tables
from bench.retention.week import Week
from bench.servers import Servers
from duequeue.spark import local_session

NAME = "retention"
FEW = 10_000


def main() -> None:
    """Simulate the week, then print and write the report, also after an interruption."""
    parser = argparse.ArgumentParser(prog="bench.retention", description=__doc__)
    parser.add_argument(
        "--messages",
        type=int,
        default=A_WEEK // SHARE,
        help="how many messages the week has (default: 6048000)",
    )
    parser.add_argument(
        "--publish", action="store_true", help="put the last report into docs/benchmarks.md"
    )
    given = parser.parse_args()
    if given.messages < DAYS:
        parser.error(f"--messages must be at least {DAYS}, one a day")
    folder = report_folder(NAME)
    if given.publish:
        _publish(folder)
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(
            number, signal.default_int_handler
        )  # a shell ignores SIGINT in the background
    costs = Costs()
    try:
        _measure(costs, given.messages // DAYS)
    except KeyboardInterrupt:
        print("\ninterrupted: here is what there is so far")
    if costs.days:
        _write(costs, folder)


def _measure(costs: Costs, messages_a_day: int) -> None:
    began = monotonic()
    with Servers() as servers, tempfile.TemporaryDirectory(prefix="duequeue-bench-") as name:
        costs.about = describe(servers)
        spark = local_session("bench", cores=str(PARTS), memory="2g")
        try:
            _tell(began, "a day of a few messages", "to warm up")
            rehearsal = Week(spark, servers.postgres.create_database(), Path(name, "0"), FEW)
            rehearsal.live(0, lambda _: None)
            week = Week(spark, servers.postgres.create_database(), Path(name, "1"), messages_a_day)
            for number in range(DAYS):
                day = f"day {number + 1} of {DAYS}, {messages_a_day:,} messages"
                costs.days.append(week.live(number, partial(_tell, began, day)))
        finally:
            spark.stop()


def _tell(began: float, day: str, what: str) -> None:
    print(f"{monotonic() - began:6.0f} s  {day}: {what}", flush=True)


def _write(costs: Costs, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    costs.write(folder / "results.json")
    (folder / "report.md").write_text(tables(costs))
    draw(costs, folder)
    print(f"\n{tables(costs)}\n\nWritten to {folder}")


def _publish(folder: Path) -> None:
    kept = folder / "results.json"
    if not kept.exists():
        raise SystemExit(f"there is no {kept}: measure first")
    costs = Costs.read(kept)
    draw(costs, folder)
    shutil.copy(folder / f"{NAME}.svg", DOCS / "img" / f"bench-{NAME}.svg")
    put_between(NAME, f"![cost per million](img/bench-{NAME}.svg)\n\n{tables(costs)}\n")


if __name__ == "__main__":
    main()
