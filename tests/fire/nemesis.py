"""Lets faults happen, and writes down when."""

import time
from collections import Counter
from collections.abc import Sequence

from tests.fire.faults import FAULTS, Scene
from tests.fire.recorder import Recorder

SHORTEST_PAUSE, LONGEST_PAUSE = 0.2, 1.0


class Nemesis:
    """One fault after the other, with pauses in which the workers recover."""

    def __init__(self, scene: Scene, recorder: Recorder) -> None:
        self._scene = scene
        self._recorder = recorder
        self.counts: Counter[str] = Counter()

    def strike(self, name: str) -> None:
        """Let one fault happen."""
        fault, scene = FAULTS[name], self._scene
        process = scene.some_process() if fault.aimed else ""
        number = self.counts.total()
        self._recorder.noted(
            "fault begins",
            fault_number=number,
            fault=name,
            process=process,
            loses_replies=fault.loses_replies and scene.ground.has_network,
            undoes_leases=fault.undoes_leases,
        )
        fault.strike(scene, process)
        self._recorder.noted("fault ends", fault_number=number)
        self.counts[name] += 1

    def each_once(self, names: Sequence[str]) -> None:
        """Let each of these faults happen once, in this order."""
        for name in names:
            self._pause()
            self.strike(name)
        self._pause()

    def for_a_while(self, names: Sequence[str], seconds: float) -> None:
        """Let faults happen at random."""
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            self._pause()
            self.strike(self._scene.random.choice(names))
        self._pause()

    def _pause(self) -> None:
        time.sleep(self._scene.random.uniform(SHORTEST_PAUSE, LONGEST_PAUSE))
