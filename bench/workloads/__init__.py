"""What is measured; a new workload is one more file in one of these lists."""

from bench.workloads import (
    backlogs,
    churn,
    leases,
    offers,
    payloads,
    polls,
    processes,
    spark,
    waiting,
)

# Each suite is a run of its own.
SUITES = {
    "queues": [
        *offers.WORKLOADS,
        *polls.WORKLOADS,
        *waiting.WORKLOADS,
        *payloads.WORKLOADS,
        *processes.WORKLOADS,
        *leases.WORKLOADS,
        *churn.WORKLOADS,
        *backlogs.WORKLOADS,
    ],
    "spark": spark.WORKLOADS,
}
WORKLOADS_BY_NAME = {
    workload.name: workload for workloads in SUITES.values() for workload in workloads
}
