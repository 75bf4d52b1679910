"""The workloads; to add one, add a file and list it here."""

from bench.workloads import (
    backlogs,
    churn,
    leases,
    offers,
    payloads,
    polls,
    processes,
    service,
    spark,
    waiting,
)

# Each suite is a separate run.
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
    "service": service.WORKLOADS,
}
WORKLOADS_BY_NAME = {
    workload.name: workload for workloads in SUITES.values() for workload in workloads
}
