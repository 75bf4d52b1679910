"""One round: workers on one store, faults, then peace, then the verdict on the logs."""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.fire.actors import ActorSpec, Settings
from tests.fire.checker import Verdict, check
from tests.fire.crew import crew_of
from tests.fire.draining import TICKS
from tests.fire.faults import Scene
from tests.fire.ground import Ground
from tests.fire.nemesis import Nemesis
from tests.fire.recorder import Recorder

LEASE = 1500
PERIOD = 250
QUEUES = ("orders", "parcels", "rivals", TICKS)

# The roles of each process, and the queue of each role. Nobody consumes orders, so that every poll
# of them is in the logs. Rivals offer and drop the same key at the same time.
PROCESSES = (
    (("caller", "orders"), ("alone", "alone"), ("rival", "rivals")),
    (("caller", "orders"), ("async caller", "orders"), ("producer", "parcels")),
    (("consumer", "parcels"), ("producer", "parcels"), ("cron", TICKS), ("rival", "rivals")),
    (("async consumer", "parcels"), ("cron", TICKS), ("poller", TICKS), ("rival", "rivals")),
    (("caller", "parcels"), ("poller", TICKS), ("alone", "alone")),
)


@dataclass(frozen=True)
class Round:
    """What is to happen: these faults, once each, or at random for some seconds."""

    seed: int
    faults: Sequence[str]
    seconds: float | None = None
    mutant: str = ""


@dataclass(frozen=True)
class Outcome:
    """What came of a round."""

    verdict: Verdict
    faults: Counter[str]


def run_round(ground: Ground, plan: Round, folder: Path) -> Outcome:
    """Run a round, and judge its logs, which stay in the folder."""
    random = Random(plan.seed)
    settings = Settings(
        url=ground.fresh_url(),
        epoch=round((time.time() - time.monotonic()) * 1000),
        lease=LEASE,
        period=PERIOD,
        history=random.random() < 0.5 and ground.keeps_history,
    )
    log = folder / "nemesis.jsonl"
    with closing(Recorder(log)) as recorder, crew_of(folder, settings, plan.mutant) as crew:
        for actors in layout(random, in_one=not ground.is_shared):
            crew.start(actors)
        for hand in crew.hands.values():
            hand.await_ready()
        nemesis = Nemesis(Scene(ground, crew, random, LEASE / 1000), recorder)
        if plan.seconds is None:
            nemesis.each_once(plan.faults)
        else:
            nemesis.for_a_while(plan.faults, plan.seconds)
        crew.stop()
        last = crew.start() if ground.is_shared else crew.hands["p1"]
        if ground.is_shared:
            last.await_ready()
        last.order("drain", queues=QUEUES)
    return Outcome(check(folder), nemesis.counts)


def layout(random: Random, *, in_one: bool) -> list[list[ActorSpec]]:
    """Return the actors of each process; some clocks are wrong from the beginning."""
    processes: list[list[ActorSpec]] = []
    for number, roles in enumerate(PROCESSES):
        actors: list[ActorSpec] = []
        for role, queue in roles:
            name = f"{role} {number}.{len(actors)}"
            skew = 0 if queue in {TICKS, "alone"} else random.choice([0, 0, 0, -120, 120])
            seed = random.randrange(2**32)
            actors.append(ActorSpec(name, role, queue, seed, skew))
        processes.append(actors)
    return [[actor for actors in processes for actor in actors]] if in_one else processes
