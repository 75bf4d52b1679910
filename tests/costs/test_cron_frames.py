"""How many of our own Python calls it takes to install a cron."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import duequeue
from duequeue import Daily, ManualClock, Queue

OURS = str(Path(duequeue.__file__).parent)
TIMES = ["07:00", "12:00", "19:00"]  # on two days, six ticks
MOST = 250


def frames_of(call: Callable[[], object]) -> int:
    """Count the calls of functions in our package that a call makes on this thread.

    Each event "call" of `sys.setprofile` counts, so a generator counts each time it is resumed. The
    thread of the crons is not counted: it has no part in an installation, and is woken at its end.
    """
    found = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal found
        found += event == "call" and frame.f_code.co_filename.startswith(OURS)

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def test_a_daily_schedule_is_installed_in_few_calls(tmp_path: Path, clock: ManualClock) -> None:
    with (
        Queue[str].open(f"sqlite:///{tmp_path / 'queue.db'}", "orders", clock=clock) as queue,
        Queue[str].open("memory:warm", "orders", clock=clock) as other,
    ):
        # The first cron of a process reads the zones and starts a thread.
        other.cron.install_daily_schedule("reports", Daily(["09:00"], "Europe/Berlin"), "hello")

        def install() -> None:
            schedule = Daily(TIMES, "Europe/Berlin")
            queue.cron.install_daily_schedule("reports", schedule, "hello")

        assert frames_of(install) <= MOST
        assert queue.stats().future == 6
