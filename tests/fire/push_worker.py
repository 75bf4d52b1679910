"""A push process with short leases: `python -m tests.fire.push_worker URL MUTANT`.

Nobody can set the lease of a push process, and a round cannot wait for minutes after a kill. It
cannot wait for as long as a breaker stays open either.
"""

import asyncio
import sys
from datetime import timedelta

from duequeue import SystemClock
from duequeue.callbacks.breaker import Breaker, BreakerRule
from duequeue.callbacks.pushing import PushSettings
from duequeue.parts import QueueSettings
from tests.fire.mutants_of_callbacks import CALLBACK_CHANGES

LEASE = timedelta(seconds=2)
RULE = BreakerRule(first_pause=300, longest_pause=600)


async def main() -> None:
    setattr(Breaker.__init__, "__defaults__", (RULE,))  # noqa: B010 - mypy refuses the plain assignment
    url, mutant = sys.argv[1:]
    if mutant:
        CALLBACK_CHANGES[mutant]()
    store = QueueSettings(url, SystemClock(), LEASE, timedelta(milliseconds=300))
    async with PushSettings().running(store):
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
