"""Whole tables of messages that Spark writes, writes again, reads and streams."""

from collections.abc import Callable

from bench.contender import Contender
from bench.workload import Outcome, Workload, rate

PATIENCE = 600


def _rated(method: str) -> Callable[[Contender, int], Outcome]:
    def measure(contender: Contender, messages: int) -> Outcome:
        return rate(messages, getattr(contender, method)(messages))

    return measure


def memory(contender: Contender, messages: int) -> Outcome:
    """Measure how much the driver's memory grows from the third micro-batch to the last."""
    megabytes = contender.watch_memory(messages)
    first, last = megabytes[2], megabytes[-1]
    return Outcome({"MB more": last - first, "MB": last}, {"MB": megabytes})


def _write(name: str, title: str, about: str) -> Workload:
    method = f"write_{name}"
    return Workload(
        f"spark-write-{name}",
        title,
        about,
        method,
        _rated(method),
        full=1_000_000,
        quick=200_000,
        patience=PATIENCE,
    )


WORKLOADS = [
    _write("new", "Write new keys", "A DataFrame in two partitions goes into an empty table."),
    _write(
        "equal",
        "Write the same rows again",
        "All rows are already there, so nothing changes. JDBC cannot do that and appends new rows.",
    ),
    _write(
        "changed",
        "Write changed rows",
        "All rows are there with other payloads. JDBC cannot update them and appends new rows.",
    ),
    Workload(
        "spark-read",
        "Read a snapshot",
        "Every column of every message is read in two partitions and discarded.",
        "read_all",
        _rated("read_all"),
        full=4_000_000,
        quick=500_000,
        patience=PATIENCE,
    ),
    Workload(
        "spark-stream",
        "Stream into Parquet",
        "Micro-batches of up to 100,000 messages are leased, written and acked. Only the second "
        "half of them counts, when Java is warm.",
        "drain",
        _rated("drain"),
        full=2_500_000,
        quick=300_000,
        patience=PATIENCE,
    ),
    Workload(
        "spark-memory",
        "Memory of the driver",
        "The Python processes of the driver during a stream, from the third micro-batch to "
        "the last.",
        "watch_memory",
        memory,
        full=2_000_000,
        quick=300_000,
        better="less",
        rounds=1,
        patience=PATIENCE,
    ),
]
