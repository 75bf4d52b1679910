"""What is measured; a new workload is one more file in this list."""

from bench.workloads import backlogs, churn, leases, offers, payloads, polls, processes, waiting

WORKLOADS = [
    *offers.WORKLOADS,
    *polls.WORKLOADS,
    *waiting.WORKLOADS,
    *payloads.WORKLOADS,
    *processes.WORKLOADS,
    *leases.WORKLOADS,
    *churn.WORKLOADS,
    *backlogs.WORKLOADS,
]
WORKLOADS_BY_NAME = {workload.name: workload for workload in WORKLOADS}
