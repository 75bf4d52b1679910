"""A default that several places need stands in `defaults.py` alone."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import duequeue

PACKAGE = Path(duequeue.__file__).parent
MODULES = [
    each
    for each in sorted(PACKAGE.rglob("*.py"))
    if "contract" not in each.relative_to(PACKAGE).parts and each.name != "defaults.py"
]
# A default in a help text that is a number, and not a placeholder for one.
WRITTEN_OUT = re.compile(r"\(default: [^)]*(?<!ISO )\b\d")
# Zero, one, a flag and the like are not decisions that anybody would change in two places.
OBVIOUS = {"0", "1", "0.0", "1.0", "timedelta(0)"}


def literals(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The parameters, fields and arguments of commands whose defaults are numbers or durations."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            taken = node.args
            positional = [*taken.posonlyargs, *taken.args]
            given = positional[len(positional) - len(taken.defaults) :]
            pairs = [*zip(given, taken.defaults, strict=True)]
            pairs += [
                (name, value)
                for name, value in zip(taken.kwonlyargs, taken.kw_defaults, strict=True)
                if value is not None
            ]
            yield from ((name.arg, ast.unparse(value)) for name, value in pairs if literal(value))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if node.value is not None and literal(node.value):
                yield node.target.id, ast.unparse(node.value)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = str(node.args[0].value).lstrip("-").replace("-", "_")
            for each in node.keywords:
                if each.arg == "default" and literal(each.value):
                    yield name, ast.unparse(each.value)


def literal(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func) == "timedelta"
    return isinstance(value, ast.Constant) and type(value.value) in {int, float}


def test_no_two_modules_state_the_same_default() -> None:
    places = defaultdict(set)
    for module in MODULES:
        for name, value in literals(ast.parse(module.read_text("utf-8"))):
            if value not in OBVIOUS:
                places[name, value].add(str(module.relative_to(PACKAGE)))
    repeated = {each: sorted(found) for each, found in places.items() if len(found) > 1}
    assert repeated == {}


def test_no_help_text_repeats_a_default() -> None:
    repeated = [
        f"{module.relative_to(PACKAGE)}: {node.value}"
        for module in MODULES
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and WRITTEN_OUT.search(node.value)
    ]
    assert repeated == []


def test_each_default_is_used() -> None:
    names = re.findall(r"^([A-Z_]+) = ", (PACKAGE / "defaults.py").read_text("utf-8"), re.MULTILINE)
    sources = [module.read_text("utf-8") for module in MODULES]
    assert [name for name in names if not any(re.search(rf"\b{name}\b", s) for s in sources)] == []
