"""The name of a class says which one it is."""

import ast
from collections import Counter
from pathlib import Path

import duequeue

PACKAGE = Path(duequeue.__file__).parent
# What a client over HTTP sends and gets has the names that the library gives to the same things,
# and twins of dialects have one name. There should be no more of them than these.
MOST = 12


def test_few_public_classes_have_the_name_of_another_one() -> None:
    names = Counter(
        node.name
        for module in PACKAGE.rglob("*.py")
        if "contract" not in module.relative_to(PACKAGE).parts
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    repeated = sorted(name for name, count in names.items() if count > 1)
    assert len(repeated) <= MOST, f"defined twice: {', '.join(repeated)}"
