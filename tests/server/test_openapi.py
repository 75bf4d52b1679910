"""The description of the API, and an outside judge that takes it at its word."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from duequeue.server import Limits, app_for
from duequeue.server.app import ROUTES
from duequeue.server.tokens import Scope, TokenFile, new_token
from tests.server.served import served

JUDGE = Path(sys.executable).parent / "schemathesis"


def test_every_route_is_described(http: httpx.Client) -> None:
    document = http.get("/openapi.json").json()
    described = {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    }
    assert described == {(route.method, route.path) for route in ROUTES.all if route.documented}
    names = [
        each["operationId"] for methods in document["paths"].values() for each in methods.values()
    ]
    assert len(set(names)) == len(names)


# A request that the schemas allow may still be refused with 422, as they cannot say everything:
# which cron expressions, time zones, cursors and lease tokens there are. 400 would be a failure.
SETTINGS = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 403, 404, 409, 422, 429]
"""


@pytest.mark.timeout(600)
def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    token, grant = new_token([Scope.ADMIN], datetime.now(UTC))
    tokens.add(grant)
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    service = app_for("memory:judged", token_file=tokens.path, limits=Limits(wait_seconds=0.01))
    with served(service) as server:
        ended = subprocess.run(
            [
                JUDGE,
                "--config-file=schemathesis.toml",
                "run",
                f"{server.url}/openapi.json",
                f"--header=Authorization: Bearer {token}",
                "--max-examples=10",
                "--phases=examples,coverage,fuzzing",
                "--request-timeout=20",
                "--workers=1",  # Python 3.11 cannot parse on two threads at once
                "--seed=1",
                "--no-color",
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
    assert ended.returncode == 0, ended.stdout[-12000:] + ended.stderr[-2000:]
