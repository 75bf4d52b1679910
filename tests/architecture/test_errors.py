"""The tree of errors is the one drawn in `errors.py`."""

import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module

import duequeue
from duequeue import errors

BRANCH = re.compile(r"^ {4}([ │├└─]*)(\w+)", re.MULTILINE)


def drawn() -> dict[str, str]:
    """Each class in the drawing, and its parent."""
    parents: dict[str, str] = {}
    above: list[str] = ["Exception"]
    for indent, name in BRANCH.findall(errors.__doc__ or ""):
        depth = len(indent) // 4
        del above[depth + 1 :]
        parents[name] = above[depth]
        above.append(name)
    return parents


def defined() -> dict[str, str]:
    """Each class of ours that is raised, and its first parent."""
    return {each.__name__: each.__bases__[0].__name__ for each in family(errors.DueQueueError)}


def family(root: type[BaseException]) -> Iterator[type[BaseException]]:
    """A class and all that come from it, wherever in the package they are defined."""
    for module in pkgutil.walk_packages(duequeue.__path__, "duequeue."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    yield root
    for child in root.__subclasses__():
        yield from family(child)


def test_the_drawing_shows_every_class() -> None:
    assert drawn() == defined()


def test_every_error_is_exported() -> None:
    assert [name for name in defined() if name not in duequeue.__all__] == []


def test_some_are_what_the_standard_library_would_raise() -> None:
    assert issubclass(errors.InvalidArgument, ValueError)
    assert issubclass(errors.InvalidType, TypeError)
    assert issubclass(errors.MissingExtra, ImportError)
