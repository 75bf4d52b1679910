"""The long form: `python -m tests.fire --minutes 30 --stores sqlite,postgres --seed 1`.

First every mutant must be caught. Then rounds follow each other on one store after the other until
the time is over, or until Ctrl-C. The logs of a round that breaks a promise are kept.
"""

import argparse
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random

from tests.fire.callback_rounds import run_callback_round
from tests.fire.checker import check
from tests.fire.ground import Ground
from tests.fire.mutants import MUTANTS
from tests.fire.mutants_of_callbacks import CALLBACK_MUTANTS
from tests.fire.report import Tally, table
from tests.fire.rounds import Outcome, Round
from tests.fire.stores import STORES
from tests.fire.tours import take_tour

ROUND_SECONDS = 20.0


def main() -> int:
    options = _options()
    stores = options.stores.split(",")
    print(f"seed {options.seed}, {options.minutes} minutes on {', '.join(stores)}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="duequeue-fire-"))
    tallies = {store: Tally() for store in stores}
    survivors: list[str] = []
    with ExitStack() as opened:
        grounds = {
            store: opened.enter_context(STORES[store].ground(folder / store)) for store in stores
        }
        try:
            if options.mutants:
                survivors = _survivors(grounds, folder) + _survivors_of_callbacks(grounds, folder)
            _rounds(grounds, tallies, options, folder)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    return _conclude(tallies, survivors, options.seed, folder)


def _survivors(grounds: dict[str, Ground], folder: Path) -> list[str]:
    """Return the mutants that the drill does not catch."""
    survivors: list[str] = []
    for name, mutant in MUTANTS.items():
        for store in set(mutant.stores) & set(grounds):
            logs = _fresh(folder / "mutant")
            take_tour(mutant.tour, grounds[store].fresh_url(), logs, name)
            caught = mutant.broken in check(logs).names
            print(f"{'caught' if caught else 'SURVIVED'}: {name} ({store})", flush=True)
            if not caught:
                survivors.append(f"{name} ({store})")
    return survivors


def _survivors_of_callbacks(grounds: dict[str, Ground], folder: Path) -> list[str]:
    """Return the mutants of push processes that no round of callbacks catches."""
    survivors: list[str] = []
    for name, broken in CALLBACK_MUTANTS.items() if "callbacks" in grounds else ():
        plan = Round(1, STORES["callbacks"].faults, mutant=name)
        outcome = run_callback_round(grounds["callbacks"], plan, _fresh(folder / "mutant"))
        caught = broken in outcome.verdict.names
        print(f"{'caught' if caught else 'SURVIVED'}: {name} (callbacks)", flush=True)
        if not caught:
            survivors.append(f"{name} (callbacks)")
    return survivors


def _rounds(
    grounds: dict[str, Ground],
    tallies: dict[str, Tally],
    options: argparse.Namespace,
    folder: Path,
) -> None:
    random = Random(options.seed)
    ends_at = time.monotonic() + options.minutes * 60
    number = 0
    while time.monotonic() < ends_at:
        for store, ground in grounds.items():
            number += 1
            logs = _fresh(folder / f"round-{number}-{store}")
            plan = Round(random.randrange(2**32), _faults(store, ground), ROUND_SECONDS)
            outcome = STORES[store].run(ground, plan, logs)
            tallies[store].add(outcome)
            print(_progress(number, store, plan.seed, outcome), flush=True)
            if not outcome.verdict.violations:
                shutil.rmtree(logs)


def _faults(store: str, ground: Ground) -> Sequence[str]:
    """Return the faults of a store; a disk can only be filled if we may mount a small one."""
    faults = STORES[store].faults
    return faults if ground.disk else [each for each in faults if each != "disk full"]


def _progress(number: int, store: str, seed: int, outcome: Outcome) -> str:
    verdict = outcome.verdict
    words = f"round {number} on {store}, seed {seed}: {verdict.calls} calls, {verdict.keys} keys, "
    words += f"{outcome.faults.total()} faults, {len(verdict.violations)} violations"
    return "\n\n".join([words, *map(str, verdict.violations)])


def _conclude(tallies: dict[str, Tally], survivors: list[str], seed: int, folder: Path) -> int:
    print(f"\n{table(tallies)}\n\nseed {seed}")
    for survivor in survivors:
        print(f"this mutant survived: {survivor}")
    if any(tally.violations for tally in tallies.values()) or survivors:
        print(f"the logs are in {folder}")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fire", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--stores", default=",".join(STORES))
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32))
    parser.add_argument("--no-mutants", dest="mutants", action="store_false")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
