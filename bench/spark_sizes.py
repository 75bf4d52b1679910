"""Measure short and long tables on Spark beside its JDBC source: `python -m bench.spark_sizes`.

Both write and read the same rows in one warm session, in turns, so that the rest of the machine
disturbs both alike. Each line shows the medians in seconds, and their ratio.
"""

import argparse
from collections.abc import Callable
from contextlib import closing
from statistics import median
from typing import TypeAlias

from bench.contenders.duequeue_spark import OnSpark
from bench.contenders.spark_jdbc import Jdbc
from bench.reminders import empty_table, full_table
from bench.servers import Servers
from bench.spark_contender import WARM_UPS, SparkContender

SIZES = [1, 50_000, 200_000, 500_000, 2_000_000, 4_000_000]
Timed: TypeAlias = Callable[[SparkContender, int], float]


def write(contender: SparkContender, rows: int) -> float:
    """Write into an empty table, and return the seconds."""
    empty_table(contender.url)
    return contender.timed_write(rows)


def read(contender: SparkContender, rows: int) -> float:
    """Read a table that was filled before, and return the seconds."""
    return contender.timed_read(rows)


def medians(timed: Timed, contenders: list[SparkContender], rows: int, rounds: int) -> list[float]:
    """Let all take turns, and return the median of each one's seconds once Java is warm."""
    turns = [[timed(each, rows) for each in contenders] for _ in range(WARM_UPS + rounds)]
    return [median(seconds) for seconds in zip(*turns[WARM_UPS:], strict=True)]


def main() -> None:
    """Measure every size, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    print("| | rows | connector | JDBC | JDBC / connector |\n|---|---:|---:|---:|---:|")
    with Servers() as servers, servers.empty_store("postgres") as url, closing(Jdbc(url)) as theirs:
        # Both use the session of the first, which needs the driver of JDBC from its start.
        contenders = [OnSpark(url), theirs]
        for rows in given.sizes:
            writing = medians(write, contenders, rows, given.rounds)
            empty_table(url)
            full_table(url, rows)
            reading = medians(read, contenders, rows, given.rounds)
            for name, (ours, other) in {"write": writing, "read": reading}.items():
                print(f"| {name} | {rows:,} | {ours:.2f} | {other:.2f} | {other / ours:.2f} |")


if __name__ == "__main__":
    main()
