"""Measure short and long tables on Spark beside its JDBC source: `python -m bench.spark_sizes`.

Both write and read the same rows in one warm session, in turns, so that the rest of the machine
disturbs both alike. Each line shows the medians in seconds, and their ratio.
"""

import argparse
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import TypeAlias

from bench.contenders.duequeue_spark import OnSpark
from bench.contenders.spark_jdbc import Jdbc
from bench.reminders import empty_table, full_table
from bench.servers import Servers
from bench.spark_contender import SparkContender, read_through

SIZES = [1, 50_000, 200_000, 500_000, 2_000_000, 4_000_000]
WARM_UPS = 3
Timed: TypeAlias = Callable[[SparkContender, int], float]


def timed_write(contender: SparkContender, messages: int) -> float:
    """Write into an empty table, and return the seconds."""
    empty_table(contender.url)
    return contender.timed_write(messages)


def timed_read(contender: SparkContender, messages: int) -> float:
    """Plan a read, read every column, and return the seconds."""
    began = perf_counter()
    read_through(contender.read(messages))
    return perf_counter() - began


def medians(
    timed: Timed, ours: SparkContender, theirs: SparkContender, given: argparse.Namespace, rows: int
) -> tuple[float, float]:
    """Let both take turns, and return the medians of the seconds once Java is warm."""
    pairs = [(timed(ours, rows), timed(theirs, rows)) for _ in range(WARM_UPS + given.rounds)]
    first, second = zip(*pairs[WARM_UPS:], strict=True)
    return median(first), median(second)


def main() -> None:
    """Measure every size, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    print("| | rows | connector | JDBC | JDBC / connector |\n|---|---:|---:|---:|---:|")
    with Servers() as servers, servers.empty_store("postgres") as url:
        # Both use one session, which needs the driver of JDBC from its start.
        theirs, ours = Jdbc(url), OnSpark(url)
        for rows in given.sizes:
            for name, timed in (("write", timed_write), ("read", timed_read)):
                empty_table(url)
                full_table(url, rows)
                mine, other = medians(timed, ours, theirs, given, rows)
                print(f"| {name} | {rows:,} | {mine:.2f} | {other:.2f} | {other / mine:.2f} |")
        theirs.close()


if __name__ == "__main__":
    main()
