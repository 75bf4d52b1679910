"""The drill finds every bug that was put in on purpose, and finds nothing without one."""

from pathlib import Path

import pytest

from tests.fire.checker import check
from tests.fire.mutants import MUTANTS
from tests.fire.tours import NEED_TWO_PROCESSES, TOURS, take_tour


@pytest.mark.parametrize("tour", TOURS)
def test_a_sound_program_breaks_no_promise(
    tour: str, store: str, store_url: str, tmp_path: Path
) -> None:
    if store == "memory" and tour in NEED_TWO_PROCESSES:
        pytest.skip("the memory store ends with its process")
    logs = _logs(tmp_path)
    take_tour(tour, store_url, logs)
    verdict = check(logs)
    assert not verdict.violations, "\n\n".join(map(str, verdict.violations))
    assert verdict.calls > 0
    assert verdict.undecided == 0


@pytest.mark.parametrize(
    ("mutant", "store"),
    [(name, store) for name, mutant in MUTANTS.items() for store in mutant.stores],
)
def test_a_mutant_does_not_survive(mutant: str, store: str, store_url: str, tmp_path: Path) -> None:
    logs = _logs(tmp_path)
    take_tour(MUTANTS[mutant].tour, store_url, logs, mutant)
    assert MUTANTS[mutant].broken in check(logs).names


def _logs(folder: Path) -> Path:
    logs = folder / "logs"
    logs.mkdir()
    return logs
