"""The scripts, as the server gets them.

Each file has several of them. The first lines of a script say its name, which keys and arguments it
takes and which parts it uses, and whether a crash must not undo it:

    -- script: claim
    -- lasting
    -- keys: waiting leased
    -- args: now limit
    -- uses: clock history

These become local names. The parts, whose first lines have the same form, come before the script
itself. Names of keys are those of `keys.QueueKeys`. Arguments after the named ones are the script's
own affair; `rest` is the position of the first of them.
"""

import re
from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import NamedTuple

# These keys are passed only if the store keeps a history. Without one, their names are nil.
HISTORY_KEYS = ("rows", "last_row", "days")

_FACTS = frozenset({"lasting", "keys", "args", "uses"})
_FILES = ("messages", "burials", "crons", "history", "parts")
_SECTION = re.compile(r"^-- (script|part): (.*)\n", re.MULTILINE)
_HEADER = re.compile(r"(?:-- [a-z].*\n)*")
_COMMON = """\
local call, find, sub, format = redis.call, string.find, string.sub, string.format
"""


class Code(NamedTuple):
    """A script: its name, its text, what names it on the server, and the keys that it takes.

    If a crash undoes a script that is not `lasting`, only a lease or its end is lost.
    """

    name: str
    text: str
    digest: str
    keys: tuple[str, ...]
    keeps_history: bool
    lasting: bool


@cache
def code(name: str) -> Code:
    """Return a script by its name."""
    headers, body = divided(name, _sections()["script", name])
    uses = headers.get("uses", [])
    parts = [divided(each, _sections()["part", each]) for each in uses]
    keys = dict.fromkeys(
        [*headers.get("keys", []), *(k for h, _ in parts for k in h.get("keys", []))]
    )
    keeps_history = "history" in uses
    named = [*keys, *(HISTORY_KEYS if keeps_history else ())]
    arguments = headers.get("args", [])
    text = "".join(
        [
            _COMMON,
            _locals(named, "KEYS"),
            _locals(arguments, "ARGV"),
            f"local rest = {len(arguments) + 1}\n",
            *(part for _, part in parts),
            body,
        ]
    )
    return Code(name, text, _digest(text), tuple(keys), keeps_history, "lasting" in headers)


@cache
def _sections() -> dict[tuple[str, str], str]:
    """Return scripts and parts by their names."""
    found = dict[tuple[str, str], str]()
    for name in _FILES:
        found |= sections(files(__name__).joinpath(f"{name}.lua").read_text("utf-8"))
    return found


def add_scripts(text: str) -> None:
    """Make known the scripts and parts of another file."""
    _sections().update(sections(text))


def sections(text: str) -> dict[tuple[str, str], str]:
    """Return the scripts and parts of a file, without their names."""
    _, *found = _SECTION.split(text)
    bodies = (body.rstrip("\n") + "\n" for body in found[2::3])
    return dict(zip(zip(found[0::3], found[1::3], strict=True), bodies, strict=True))


def divided(name: str, text: str) -> tuple[dict[str, list[str]], str]:
    """Divide a script or a part into what its first lines say and the rest."""
    header = _HEADER.match(text)
    size = header.end() if header else 0
    headers = dict[str, list[str]]()
    for line in text[:size].splitlines():
        fact, _, words = line.removeprefix("-- ").partition(": ")
        if fact not in _FACTS:
            raise LookupError(f"{name} states {fact!r}, which is not one of {sorted(_FACTS)}")
        headers[fact] = words.split()
    return headers, text[size:]


def _locals(names: list[str], table: str) -> str:
    if not names:
        return ""
    values = ", ".join(f"{table}[{number}]" for number in range(1, len(names) + 1))
    return f"local {', '.join(names)} = {values}\n"


def _digest(text: str) -> str:
    return sha1(text.encode(), usedforsecurity=False).hexdigest()  # Redis names scripts by it
