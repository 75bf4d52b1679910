"""What is measured; a new workload is one more file in this list."""

from bench.workloads import offers, polls, waiting

WORKLOADS = [*offers.WORKLOADS, *polls.WORKLOADS, *waiting.WORKLOADS]
WORKLOADS_BY_NAME = {workload.name: workload for workload in WORKLOADS}
