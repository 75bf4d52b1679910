"""Every argument that is refused is refused with `InvalidArgument` or `InvalidType`."""

import ast
from collections.abc import Iterator
from pathlib import Path

import duequeue

SOURCE = Path(duequeue.__file__).parent
PLAIN = {"ValueError", "TypeError"}

# Files that may raise a plain error, because no argument is refused there.
ALLOWED = {
    "callbacks/signing.py": "pickle expects a TypeError from what it cannot pickle",
    "codec.py": "any error of `decode` means undecodable",
    "opening_async.py": "`with` expects a TypeError from what it cannot enter",
    "payloads/pydantic_models.py": "the hooks of msgspec, which catches these errors",
    "process/lifetime.py": "`with` and pickle expect a TypeError, and so does a class when called",
    "spark/batch_reader.py": "Spark never passes the partition of another reader",
    "spark/stream_reader.py": "Spark never passes the partition of another reader",
}


def plain_raises(tree: ast.AST) -> Iterator[int]:
    """The lines that raise a plain error, with or without a text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(raised, ast.Name) and raised.id in PLAIN:
                yield node.lineno


def found() -> dict[str, list[int]]:
    """The lines of each file that raise a plain error; the suite of the contract tests others."""
    lines = {
        path.relative_to(SOURCE).as_posix(): list(plain_raises(ast.parse(path.read_text("utf-8"))))
        for path in SOURCE.rglob("*.py")
    }
    return {name: at for name, at in lines.items() if at and not name.startswith("contract/")}


def test_no_argument_is_refused_with_a_plain_error() -> None:
    assert {name: at for name, at in found().items() if name not in ALLOWED} == {}


def test_each_exception_from_this_rule_is_needed() -> None:
    assert ALLOWED.keys() - found().keys() == set()
