"""One process alone on a queue: every answer of every store is the one that the model expects."""

from contextlib import closing
from pathlib import Path

import pytest

from tests.fire.actors import Settings
from tests.fire.checker import check
from tests.fire.recorder import Recorder
from tests.fire.scripted import Scripted
from tests.fire.stage import EPOCH, LEASE, PERIOD
from tests.fire.tours import RARELY

CALLS = 500


@pytest.mark.parametrize("seed", range(4))
def test_every_answer_is_expected(store_url: str, tmp_path: Path, seed: int) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    settings = Settings(store_url, EPOCH, LEASE, PERIOD, history=seed % 2 == 1)
    with closing(Recorder(logs / "p1.jsonl")) as recorder:
        process = Scripted("p1", settings, recorder, set)
        process.open("walker", "orders", RARELY)
        try:
            process.walk("walker", CALLS, seed)
        finally:
            process.shut("walker")
    verdict = check(logs)
    assert verdict.calls > CALLS / 2
    assert not verdict.violations, "\n\n".join(map(str, verdict.violations))
