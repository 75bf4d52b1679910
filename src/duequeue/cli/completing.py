"""Which words may follow in a command line, found out from the parsers themselves."""

import argparse
from collections.abc import Iterator
from typing import NamedTuple

from duequeue.cli.commands import COMMANDS
from duequeue.cli.parsing import parser_for


class Words(NamedTuple):
    """What may follow a command, or an option of it that takes one of a few values.

    `place` is the command, as in "buried ls", and then the option, as in "ls --state".
    """

    place: str
    words: tuple[str, ...]
    takes_files: bool = False


def words_by_command() -> list[Words]:
    """Return the words of every command."""
    return list(_words("", parser_for([command.name for command in COMMANDS])))


def _words(place: str, parser: argparse.ArgumentParser) -> Iterator[Words]:
    words: list[str] = []
    takes_files = False
    options: list[Words] = []
    nested: list[Words] = []
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to look at them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - likewise
            words += action.choices
            for name, each in action.choices.items():
                nested += _words(f"{place} {name}".strip(), each)
        elif action.option_strings:
            words += [each for each in action.option_strings if each.startswith("--")]
            if action.choices is not None or action.metavar in {"FILE", "FOLDER"}:
                of_option = tuple(map(str, action.choices or ()))
                options += [
                    Words(f"{place} {each}".strip(), of_option, not of_option)
                    for each in action.option_strings
                ]
        elif action.choices is not None:
            words += map(str, action.choices)
        else:
            takes_files = takes_files or action.metavar == "FILE"
    yield Words(place, tuple(words), takes_files)
    yield from options
    yield from nested
