"""The scripts, as the server gets them.

Each file says in its first lines which keys and arguments it takes and which parts it uses, and
whether a crash must not undo it:

    -- lasting
    -- keys: waiting leased
    -- args: now limit
    -- uses: clock history

These become local names, and the parts come before the script itself. Names of keys are those of
`keys.QueueKeys`. Arguments after the named ones are the script's own affair; `rest` is the
position of the first of them.
"""

import re
from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import NamedTuple

# These keys are passed only if the store keeps a history. Without one, their names are nil.
HISTORY_KEYS = ("rows", "last_row", "days")

_FACTS = frozenset({"lasting", "keys", "args", "uses"})
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
    """Return a script by the name of its file."""
    headers, body = _read(f"{name}.lua")
    uses = headers.get("uses", [])
    parts = [_read(f"parts/{each}.lua") for each in uses]
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


def _read(path: str) -> tuple[dict[str, list[str]], str]:
    """Return what the first lines of a file say, and the rest of it."""
    return divided(path, files(__name__).joinpath(path).read_text("utf-8"))


def divided(path: str, text: str) -> tuple[dict[str, list[str]], str]:
    """Divide the text of a file into what its first lines say and the rest."""
    header = _HEADER.match(text)
    size = header.end() if header else 0
    headers = dict[str, list[str]]()
    for line in text[:size].splitlines():
        fact, _, words = line.removeprefix("-- ").partition(": ")
        if fact not in _FACTS:
            raise LookupError(f"{path} states {fact!r}, which is not one of {sorted(_FACTS)}")
        headers[fact] = words.split()
    return headers, text[size:]


def _locals(names: list[str], table: str) -> str:
    if not names:
        return ""
    values = ", ".join(f"{table}[{number}]" for number in range(1, len(names) + 1))
    return f"local {', '.join(names)} = {values}\n"


def _digest(text: str) -> str:
    return sha1(text.encode(), usedforsecurity=False).hexdigest()  # Redis names scripts by it
