"""All seeded bugs."""

from tests.mutants.bugs_of_queues import QUEUE_BUGS
from tests.mutants.bugs_of_services import SERVICE_BUGS
from tests.mutants.bugs_of_stores import STORE_BUGS

BUGS = (*QUEUE_BUGS, *STORE_BUGS, *SERVICE_BUGS)
