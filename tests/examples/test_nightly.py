"""The nightly examples name commands that exist.

Airflow is not a dependency. Stand-ins for two of its classes record what the DAG asks of them. So
the tests show that the file can be imported and that its commands are right, but not that Airflow
runs it.
"""

import runpy
import shlex
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import pytest

from duequeue.cli.parsing import parser_for

NIGHTLY = Path(__file__).parents[2] / "examples" / "nightly"


class Operator:
    """What the DAG asks of Airflow's BashOperator."""

    def __init__(self, **given: Any) -> None:
        self.given = given
        self.next: Operator | None = None

    def __rshift__(self, following: "Operator") -> None:
        self.next = following


class Dag:
    """What the DAG asks of Airflow's DAG."""

    def __init__(self, **given: Any) -> None:
        self.given = given

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


def check(command: str) -> None:
    """Check a command with our own parser, which exits if an argument is wrong."""
    name, *arguments = shlex.split(command)
    assert name == "duequeue"
    parser_for(arguments[:1]).parse_args(arguments)


def test_the_dag_archives_and_then_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    bash, sdk = ModuleType("airflow.providers.standard.operators.bash"), ModuleType("airflow.sdk")
    monkeypatch.setattr(bash, "BashOperator", Operator, raising=False)
    monkeypatch.setattr(sdk, "DAG", Dag, raising=False)
    parts = bash.__name__.split(".")
    for package in [".".join(parts[:end]) for end in range(1, len(parts))]:
        monkeypatch.setitem(sys.modules, package, ModuleType(package))
    for module in (bash, sdk):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    names = runpy.run_path(str(NIGHTLY / "airflow_dag.py"))
    archive, report = names["archive"], names["report"]
    assert archive.next is report
    monkeypatch.setenv("DUEQUEUE_URL", "postgresql://localhost/app")
    for operator in (archive, report):
        assert set(operator.given["env"]) == {"DUEQUEUE_URL"}
        check(operator.given["bash_command"])


def test_the_crontab_names_commands_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUEQUEUE_URL", "postgresql://localhost/app")
    (line,) = [
        line
        for line in (NIGHTLY / "crontab").read_text().splitlines()
        if line and line[0].isdigit()
    ]
    commands = [f"duequeue {each}" for each in line.split("duequeue pipeline")[1:]]
    assert len(commands) == 2
    for command in commands:
        check(command.replace("duequeue ", "duequeue pipeline ").removesuffix("&& "))
