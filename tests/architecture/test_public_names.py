"""What `from duequeue import …` offers: all of it meant, all of it documented."""

import inspect
import subprocess
import sys
from importlib.resources import files
from types import ModuleType

import pytest

import duequeue

PUBLIC = {name: getattr(duequeue, name) for name in duequeue.__all__}


def members_of(subject: type) -> dict[str, object]:
    """The methods and properties that a class of ours defines, or inherits from one of ours."""
    return {
        name: member
        for each in reversed(subject.__mro__)
        if each.__module__.partition(".")[0] == "duequeue"
        for name, member in vars(each).items()
        if not name.startswith("_") and (inspect.isroutine(member) or isinstance(member, property))
    }


def test_everything_importable_is_exported() -> None:
    importable = {
        name
        for name, value in vars(duequeue).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert importable == set(duequeue.__all__)


def test_exports_are_sorted_and_named_once() -> None:
    assert list(duequeue.__all__) == sorted(set(duequeue.__all__))


@pytest.mark.parametrize("name", PUBLIC)
def test_every_export_is_ours(name: str) -> None:
    assert PUBLIC[name].__module__.partition(".")[0] == "duequeue"


@pytest.mark.parametrize("name", PUBLIC)
def test_every_export_is_documented(name: str) -> None:
    subject = PUBLIC[name]
    assert inspect.isfunction(subject) or "__doc__" in vars(subject)
    assert subject.__doc__
    assert not subject.__doc__.startswith(f"{name}("), "that is a dataclass's own"
    if inspect.isclass(subject):
        undocumented = [
            member for member, value in members_of(subject).items() if not inspect.getdoc(value)
        ]
        assert undocumented == []


def test_no_driver_is_imported_before_its_url_is_opened() -> None:
    code = "import sys, duequeue; print({'psycopg', 'sqlite3', 'sqlalchemy'} & set(sys.modules))"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert finished.stdout.decode().strip() == "set()"


@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
def test_package_data_is_there(dialect: str) -> None:
    folder = files(f"duequeue.stores.sql.{dialect}")
    assert "-- name: " in folder.joinpath("queries.sql").read_text("utf-8")
    migrations = [each.name for each in folder.joinpath("migrations").iterdir()]
    assert "0001_messages.sql" in migrations
    assert files("duequeue").joinpath("py.typed").is_file()
