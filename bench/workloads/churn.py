"""Steady work for a while, which shows how large tables and indexes become."""

import time

import psycopg

from bench.contender import BATCH, Contender
from bench.workload import Outcome, Workload

PER_SECOND = 2000
STEP = 0.1  # seconds

SIZES = """
    SELECT
        sum(pg_table_size(pg_class.oid)) / 1e6, sum(pg_indexes_size(pg_class.oid)) / 1e6
    FROM pg_class INNER JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE relkind = 'r' AND nspname NOT IN ('pg_catalog', 'information_schema')
"""


def steady(contender: Contender, seconds: int) -> Outcome:
    """Put in and take out two thousand messages a second, and look at the sizes once a second."""
    tables, indexes = list[float](), list[float]()
    step = round(PER_SECOND * STEP) // BATCH * BATCH
    began, steps = time.monotonic(), round(seconds / STEP)
    with psycopg.connect(contender.url, autocommit=True) as connection:
        for number in range(steps):
            contender.load(step)
            contender.poll_ack_many(step)
            if number % round(1 / STEP) == 0:
                row = connection.execute(SIZES).fetchone()
                assert row is not None
                tables.append(float(row[0]))
                indexes.append(float(row[1]))
            time.sleep(max(0.0, began + (number + 1) * STEP - time.monotonic()))
    behind = time.monotonic() - began - seconds
    return Outcome(
        {"MB": tables[-1] + indexes[-1], "table MB": tables[-1], "s behind": max(0.0, behind)},
        {"table MB": tables, "index MB": indexes},
    )


WORKLOADS = [
    Workload(
        "churn",
        "Steady churn",
        f"{PER_SECOND:,} messages a second go in and out; the figures are the sizes at the end.",
        "poll_ack_many",
        steady,
        full=30,
        patience=1200,
        better="less",
        rounds=1,
        only=("duequeue", "seed", "pgqueuer", "pg-boss"),
    )
]
