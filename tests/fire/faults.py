"""The faults, by name: what each one strikes, and what it may do to calls at that time."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.fire.crew import Crew
from tests.fire.ground import Ground
from tests.fire.proxy import Proxy

# The clocks of these actors are left alone. A cron takes its instants from its clock, and the other
# one moves its own.
STEADY = {"cron", "alone"}


@dataclass
class Scene:
    """Where faults happen."""

    ground: Ground
    crew: Crew
    random: Random
    lease: float

    def some_process(self) -> str:
        return self.random.choice(sorted(self.crew.hands))


@dataclass(frozen=True)
class Fault:
    """A fault: `strike` lasts as long as the fault does.

    A fault that is not aimed at a process strikes all of them.
    """

    strike: Callable[[Scene, str], None]
    aimed: bool = False
    undoes_leases: bool = False
    loses_replies: bool = True


def kill(scene: Scene, process: str) -> None:
    """End a process without a warning, and start another in its place."""
    scene.crew.hands[process].kill()
    scene.crew.replace(process)


def pause(scene: Scene, process: str) -> None:
    """Keep a process from running for longer than a lease."""
    hand = scene.crew.hands[process]
    hand.pause()
    time.sleep(scene.lease * scene.random.uniform(1.1, 1.5))
    hand.resume()


def clock(scene: Scene, process: str) -> None:
    """Let the clock of one actor jump, forwards or backwards."""
    hand = scene.crew.hands[process]
    movable = [actor for actor in hand.spec.actors if actor.role not in STEADY]
    if movable:
        by = scene.random.choice([-700, -300, 300, 700])
        hand.order("jump", actor=scene.random.choice(movable).name, by=by)


def lock(scene: Scene, process: str) -> None:
    """Let another program's transaction hold the file or the rows."""
    with scene.ground.hold():
        time.sleep(scene.random.uniform(0.2, 1.2))


def disk_full(scene: Scene, process: str) -> None:
    """Leave no space for the store."""
    if (disk := scene.ground.disk) is not None:
        disk.fill()
        time.sleep(scene.random.uniform(0.2, 0.8))
        disk.free()
        scene.ground.revive()


def crash(scene: Scene, process: str) -> None:
    """Crash the server and start it again."""
    scene.ground.crash()


def failover(scene: Scene, process: str) -> None:
    """Crash a primary, which comes back as the replica of its replica."""
    scene.ground.crash()


def cut(scene: Scene, process: str) -> None:
    """Break every connection and refuse new ones for a while."""
    _cut(scene.ground.proxy, scene.random)


def black_hole(scene: Scene, process: str) -> None:
    """Lose every packet for a while, and deliver them later."""
    _swallow(scene.ground.proxy, scene.random)


def alerts_flush(scene: Scene, process: str) -> None:
    """Delete everything in the Redis through which processes wake each other."""
    scene.ground.alerts.flush()


def alerts_crash(scene: Scene, process: str) -> None:
    """Crash that Redis, and start it again, empty."""
    scene.ground.alerts.crash()


def alerts_cut(scene: Scene, process: str) -> None:
    """Break every connection to that Redis, and refuse new ones for a while."""
    _cut(scene.ground.alerts.proxy, scene.random)


def alerts_black_hole(scene: Scene, process: str) -> None:
    """Lose every packet to and from that Redis for a while."""
    _swallow(scene.ground.alerts.proxy, scene.random)


def _cut(network: Proxy, random: Random) -> None:
    network.cut()
    time.sleep(random.uniform(0.05, 0.8))
    network.restore()


def _swallow(network: Proxy, random: Random) -> None:
    network.swallow()
    time.sleep(random.uniform(0.3, 2.0))
    network.restore()


FAULTS = {
    "kill": Fault(kill, aimed=True),
    "pause": Fault(pause, aimed=True),
    "clock": Fault(clock, aimed=True, loses_replies=False),
    "lock": Fault(lock),
    # A server without space for its log ends, as in a crash.
    "disk full": Fault(disk_full, undoes_leases=True),
    "crash": Fault(crash, undoes_leases=True),
    "failover": Fault(failover, undoes_leases=True),
    "cut": Fault(cut),
    "black hole": Fault(black_hole),
    # No answer of the store comes through this Redis.
    "alerts flush": Fault(alerts_flush, loses_replies=False),
    "alerts crash": Fault(alerts_crash, loses_replies=False),
    "alerts cut": Fault(alerts_cut, loses_replies=False),
    "alerts black hole": Fault(alerts_black_hole, loses_replies=False),
}
