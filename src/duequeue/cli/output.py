"""What commands print: data on stdout, as a table, JSON or only keys, and remarks on stderr."""

import argparse
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec

from duequeue.errors import InvalidArgument

Facts: TypeAlias = Mapping[str, Any]

# The widths of a table's columns come from this many rows, so that long lists need not be kept.
MEASURED_ROWS = 1000
LONGEST_LAST_COLUMN = 200
BOLD, RED, GREEN, YELLOW = "1", "31", "32", "33"


class Text(Protocol):
    """What a table shows of an item."""

    def __call__(self, item: Any, /) -> str: ...


class Column(NamedTuple):
    """A column of a table; numbers are aligned on the right.

    `width` is for tables whose rows come one by one and cannot be measured.
    """

    title: str
    text: Text
    is_number: bool = False
    width: int = 0


def add_output(parser: argparse.ArgumentParser, quiet: str = "print only the keys") -> None:
    """Add the arguments that choose the form of the output."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON document")
    form.add_argument("--jsonl", action="store_true", help="print one JSON object per line")
    form.add_argument("-q", "--quiet", action="store_true", help=f"{quiet}, and no remarks")


class Output:
    """The output of one command, in the form that its arguments choose."""

    def __init__(self, given: argparse.Namespace) -> None:
        self._is_json: bool = given.json
        self._is_jsonl: bool = given.jsonl
        self._is_quiet: bool = given.quiet

    def talk(self, words: str) -> None:
        """Print a remark for people."""
        if not self._is_quiet:
            print(printable(words), file=sys.stderr)

    def items(
        self,
        items: Iterable[Facts],
        columns: Sequence[Column],
        key: str = "key",
        *,
        live: bool = False,
    ) -> int:
        """Print a list, and return its length; each item of a live list is printed as it comes."""
        counted = _Counted(items)
        if self._is_json:
            _print_array(counted)
        elif self._is_jsonl:
            for item in counted:
                print(as_json(item), flush=True)
        elif self._is_quiet:
            for item in counted:
                print(one_line(str(item[key])), flush=True)
        else:
            _print_table(table(counted, columns, 0 if live else MEASURED_ROWS))
        return counted.number

    def item(self, item: Facts, key: str = "key") -> None:
        """Print one thing, with a line for each of its facts."""
        if self._is_json or self._is_jsonl:
            print(as_json(item))
        elif self._is_quiet:
            print(one_line(str(item[key])))
        else:
            width = max(map(len, item))
            for name, value in item.items():
                if value is not None:
                    print(f"{name:<{width}}  {as_text(value)}")


class _Counted:
    """An iterable that counts what was taken from it."""

    def __init__(self, items: Iterable[Facts]) -> None:
        self._items = items
        self.number = 0

    def __iter__(self) -> Iterator[Facts]:
        for item in self._items:
            self.number += 1
            yield item


def as_json(value: object) -> str:
    """Write a value as JSON on one line."""
    return msgspec.json.encode(value).decode()


def as_text(value: object) -> str:
    """Write a value for people, on one line."""
    return printable(value if isinstance(value, str) else as_json(value))


def printable(text: str) -> str:
    """Escape the characters with which a text could control the terminal."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def one_line(text: str) -> str:
    """Return a text that the reader of lines will read as it is, or raise."""
    if len(text.splitlines()) > 1 or text != text.rstrip("\r\n"):
        raise InvalidArgument(
            "--quiet", text=f"{text!r} contains a line break: use --jsonl instead of --quiet"
        )
    return printable(text) if sys.stdout.isatty() else text


def paint(text: str, colour: str) -> str:
    """Colour a text, if a person reads it and has not set NO_COLOR."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{colour}m{text}\x1b[0m"


def table(
    items: Iterable[Facts], columns: Sequence[Column], measured_rows: int = MEASURED_ROWS
) -> Iterator[str]:
    """Return the lines of a table, of which the first one has the titles."""
    rows = ([printable(column.text(item)) for column in columns] for item in items)
    measured = list(islice(rows, measured_rows))
    titles = [column.title.ljust(column.width) for column in columns]
    widths = [max(map(len, cells)) for cells in zip(titles, *measured, strict=True)]
    room = _room_for_last(widths)
    for row in chain([titles], measured, rows):
        cells = [
            text.rjust(width) if column.is_number else text.ljust(width)
            for text, width, column in zip(row[:-1], widths, columns, strict=False)
        ]
        last = row[-1].rjust(widths[-1]) if columns[-1].is_number else _cut(row[-1], room)
        yield "  ".join([*cells, last]).rstrip()


def _print_table(lines: Iterator[str]) -> None:
    """Print a table; one without rows has no titles either."""
    titles = next(lines)
    for number, line in enumerate(lines):
        if number == 0:
            print(paint(titles, BOLD))
        print(line, flush=True)


def _print_array(items: Iterable[Facts]) -> None:
    """Print an array one element at a time, because it may be long."""
    separator = "["
    for item in items:
        print(f"{separator}{as_json(item)}", end="")
        separator = ",\n "
    print("]" if separator != "[" else "[]")


def _room_for_last(widths: Sequence[int]) -> int:
    if not sys.stdout.isatty():
        return LONGEST_LAST_COLUMN
    return max(20, shutil.get_terminal_size().columns - sum(widths[:-1]) - 2 * len(widths[:-1]))


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"
