"""Processes work on each store while things break, and break no promise themselves."""

from pathlib import Path

import pytest

from tests.fire.callback_rounds import run_callback_round
from tests.fire.ground import Ground
from tests.fire.mutants_of_callbacks import CALLBACK_MUTANTS
from tests.fire.rounds import Round, run_round
from tests.fire.stores import STORES
from tests.fire.violations import Broken

SEED = 13


def burn(ground: Ground, faults: list[str], folder: Path) -> None:
    """Let each fault happen once, and check that the logs show no violation."""
    logs = folder / "logs"
    logs.mkdir()
    outcome = run_round(ground, Round(SEED, faults), logs)
    verdict = outcome.verdict
    assert not verdict.violations, "\n\n".join(map(str, verdict.violations))
    assert outcome.faults.total() == len(faults)
    assert verdict.keys > 50
    assert verdict.undecided < verdict.keys / 20


def test_memory(memory_ground: Ground, tmp_path: Path) -> None:
    burn(memory_ground, ["clock", "pause", "clock"], tmp_path)


def test_sqlite(sqlite_ground: Ground, tmp_path: Path) -> None:
    burn(sqlite_ground, ["kill", "lock", "clock", "pause"], tmp_path)


def test_a_full_disk(sqlite_ground: Ground, tmp_path: Path) -> None:
    if sqlite_ground.disk is None:
        pytest.skip("only root may mount a small disk")
    burn(sqlite_ground, ["disk full", "disk full"], tmp_path)


def test_postgres(postgres_ground: Ground, tmp_path: Path) -> None:
    burn(postgres_ground, ["kill", "crash", "cut", "black hole", "lock", "clock"], tmp_path)


def test_mariadb(mariadb_ground: Ground, tmp_path: Path) -> None:
    burn(mariadb_ground, ["kill", "crash", "cut", "black hole", "lock", "clock"], tmp_path)


def test_mariadb_with_wake_ups_through_redis(alerted_ground: Ground, tmp_path: Path) -> None:
    faults = ["alerts flush", "alerts crash", "alerts cut", "alerts black hole"]
    burn(alerted_ground, [*faults, "kill", "crash"], tmp_path)


def test_redis(redis_ground: Ground, tmp_path: Path) -> None:
    burn(redis_ground, ["kill", "crash", "cut", "black hole", "pause", "clock"], tmp_path)


def test_redis_cluster(cluster_ground: Ground, tmp_path: Path) -> None:
    burn(cluster_ground, ["failover", "kill", "failover"], tmp_path)


def test_callbacks(postgres_ground: Ground, tmp_path: Path) -> None:
    faults = STORES["callbacks"].faults
    outcome = run_callback_round(postgres_ground, Round(SEED, faults), tmp_path)
    assert not outcome.verdict.violations, "\n\n".join(map(str, outcome.verdict.violations))
    assert outcome.faults.total() == len(faults)
    assert outcome.verdict.keys > 50


@pytest.mark.parametrize(("mutant", "broken"), CALLBACK_MUTANTS.items(), ids=CALLBACK_MUTANTS)
def test_a_mutant_of_callbacks_does_not_survive(
    postgres_ground: Ground, tmp_path: Path, mutant: str, broken: Broken
) -> None:
    plan = Round(SEED, STORES["callbacks"].faults, mutant=mutant)
    assert broken in run_callback_round(postgres_ground, plan, tmp_path).verdict.names
