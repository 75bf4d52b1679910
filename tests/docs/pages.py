"""The pages of the documentation, and the Python blocks in them."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RUNNABLE = [
    ROOT / "README.md",
    *sorted(DOCS.glob("*tutorial.md")),
    DOCS / "timers.md",
    *sorted(DOCS.glob("guides/*.md")),
]
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])

_BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A Python block, the line it starts on, and what it prints if the page says so."""

    line: int
    code: str
    output: str | None


def blocks_of(text: str) -> list[Block]:
    return [
        Block(text.count("\n", 0, found.start(1)), found[1], found[2])
        for found in _BLOCK.finditer(text)
    ]


def program_of(text: str) -> str:
    """Return the blocks of a page as one program, in which each line keeps its number."""
    lines = [""] * text.count("\n")
    for block in blocks_of(text):
        code = block.code.splitlines()
        lines[block.line : block.line + len(code)] = code
    return "\n".join(lines) + "\n"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()
