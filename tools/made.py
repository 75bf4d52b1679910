"""Writes the blocking modules that have an awaiting twin, from the text of that twin.

`make made` writes them, and `make check` compares. The text is changed word by word, so that
comments and docstrings stay; ruff then sorts the imports, removes those without a use, and formats.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "duequeue"
RUFF = Path(sys.executable).with_name("ruff")

# Each is made from the file beside it whose name ends in `_async`.
MADE = (
    "cron/cron.py",
    "delivery.py",
    "queue.py",
    "stores/sql/connections/borrowed.py",
    "stores/sql/connections/home.py",
    "stores/sql/mariadb/given.py",
    "stores/sql/mariadb/session.py",
    "stores/sql/postgres/given.py",
    "stores/sql/postgres/session.py",
    "timers/delay_queue.py",
)

CODE = (
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait asyncio\.to_thread\(([\w.]+)\)", r"\1()"),
    (r"\bawait ", ""),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"\bAwaitableQueue\[(.+)\]", r"\1"),
    (r"\bAwaitableQueue\b", "open_queue"),
    (r"\bLoopLifetime\b", "Lifetime"),
    (r"\b__a(enter|exit)__\b", r"__\1__"),
    (r"(?<=\w)_async\b", ""),
    (r"\basync_(?=\w)", ""),
    (r"Async(?=[A-Z])", ""),
)

# What comments and docstrings say about one world and not about the other.
WORDS = {
    "Awaiting": "Blocking",
    "awaiting": "blocking",
    "An `async with`": "A `with`",
    "Await this, or use it in an `async with` block.": "Close it, or use it in a `with` block.",
    ", with the same names as `Cron`, awaited": "",
    "It has the names of `Queue`, awaited. Safe to share among the tasks of one event loop. Close"
    " it, or use it in an `async with` block.": (
        "Safe to share among threads. Close it, or use it in a `with` block."
    ),
    "The handler is a coroutine function, or another callable that returns an awaitable, such as a"
    " lambda. A function or method written with a plain `def` is refused with a TypeError.": (
        "The handler is a plain function; a coroutine function is refused with a TypeError."
    ),
    "When a handler calls this, its consumer would have to wait for that handler. So the call"
    " returns at once, and the closing goes on in the background. So does a cancelled closing.": (
        "When a handler or a listener calls this on a thread of a consumer, which cannot wait for\n"
        "        its own end, it returns at once and the closing goes on in the background."
    ),
    "on tasks of its own": "on threads of its own",
    "this event loop shares": "this process shares",
    "the tasks of one process": "the threads of one process",
    "Tasks of several event loops may share it. A cancelled task loses no item.": (
        "An exception in the middle of a call, such as KeyboardInterrupt, loses no item,\n"
        "    except on a wheel at the moment when its hand moves."
    ),
}


def blocking(text: str) -> str:
    """Return the text of a blocking module, not yet formatted."""
    for words, instead in WORDS.items():
        text = re.sub(pattern_of(words), instead, text)
    for pattern, replacement in CODE:
        text = re.sub(pattern, replacement, text)
    return text


def pattern_of(words: str) -> str:
    """Return the pattern of some words, wherever their lines end."""
    return r"\s+".join(map(re.escape, words.split()))


def made(path: Path) -> str:
    """Return what a made file should be."""
    twin = twin_of(path)
    head = f"# Made from {twin.name}: change that file, and run `make made`.\n"
    text = head + blocking(twin.read_text("utf-8"))
    text = _ruff(path, text, "check", "--quiet", "--fix-only", "--select", "F401,I001")
    return _ruff(path, text, "format", "--quiet")


def twin_of(path: Path) -> Path:
    """Return the awaiting module that a blocking one is made from."""
    return path.with_name(f"{path.stem}_async.py")


def stale() -> Iterator[tuple[Path, str]]:
    """Return the files that are not what they should be, each with the text that it should have."""
    for name in MADE:
        path = SOURCE / name
        text = made(path)
        if not path.exists() or path.read_text("utf-8") != text:
            yield path, text


def _ruff(path: Path, text: str, *command: str) -> str:
    finished = subprocess.run(  # noqa: S603 - our own ruff, on our own files
        [RUFF, *command, "--stdin-filename", path, "-"],
        cwd=ROOT,
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    return finished.stdout


def main() -> int:
    """Write the made files, or only say which of them should be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if one is stale")
    only_checks = parser.parse_args().check
    found = list(stale())
    for path, text in found:
        name = path.relative_to(ROOT)
        if only_checks:
            print(f"{name} is not made from {twin_of(path).name}: run `make made`")
        else:
            path.write_text(text, "utf-8")
            print(f"made {name}")
    return int(only_checks and bool(found))


if __name__ == "__main__":
    sys.exit(main())
