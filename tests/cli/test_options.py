"""Every command has exactly the options that its help names, and completes none of them."""

import io
import re
from collections.abc import Iterator
from contextlib import redirect_stderr, suppress
from typing import Any

import pytest

from duequeue import Message, Queue
from duequeue.cli.completing import words_by_command
from duequeue.cli.parsing import parser_for
from tests.cli.conftest import DueQueue

USAGE = 2
# One of these is a value for any argument; "" stands for an option without a value.
VALUES = ("a", "1", "5m", "a=b", "memory:a", "")
MISSING = re.compile(r"arguments are required: ([^;\n]*)|one of the arguments (\S+)")
WRONG = re.compile(r"argument (\S+): ")
CHOICE = re.compile(r"\(choose from '?([^',)]*)")


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command that can be run, with its options."""
    options = {each.place: each.words for each in words_by_command() if "--help" in each.words}
    for place, words in options.items():
        if not any(other.startswith(f"{place} ".lstrip()) for other in options if other != place):
            yield place, [word for word in words if word.startswith("--")]


def refusal(line: list[str]) -> str:
    """What the parser says against a line, if anything; it runs nothing."""
    with redirect_stderr(io.StringIO()) as said, suppress(SystemExit):
        parser_for(line[:1]).parse_args(line)
    return said.getvalue()


def least(command: str) -> list[str]:
    """The shortest line that the command accepts, found by doing what it says."""
    values: dict[str, list[str]] = {}
    while True:
        line = [*command.split(), *(argument(name, each[0]) for name, each in values.items())]
        said = refusal(line)
        if not said:
            return line
        if missing := MISSING.search(said):
            names = (missing[1] or missing[2]).split(", ")
            values |= {name: list(VALUES) for name in names}
        elif wrong := WRONG.search(said):
            choice = CHOICE.search(said)
            values[wrong[1]] = [choice[1]] if choice else values[wrong[1]][1:]
        else:
            raise AssertionError(said)


def argument(name: str, value: str) -> str:
    if not name.startswith("--"):
        return value
    return f"{name}={value}" if value else name


@pytest.fixture(autouse=True)
def _without_defaults(bare: DueQueue) -> None:
    """No variable and no file decides which arguments are required."""


@pytest.mark.parametrize(
    ("command", "options"), [pytest.param(*each, id=each[0]) for each in commands()]
)
def test_every_command_refuses_options_that_it_does_not_have(
    command: str, options: list[str]
) -> None:
    line = least(command)
    assert "unrecognized arguments: --dry_run" in refusal([*line, "--dry_run"])
    for option in options:
        for short in {option[:-1], option[:4]} - set(options):
            assert f"unrecognized arguments: {short}" in refusal([*line, short])


def test_an_abbreviation_deletes_nothing(bare: DueQueue, tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path / 'queue.db'}"
    with Queue.open(url, "mails") as queue:
        queue.offer_batch([Message(f"k{number}", number) for number in range(3)])
        ran = bare("drop", "--url", url, "--al", "--ye", "--que", "mails")
        assert (ran.status, ran.out) == (USAGE, "")
        assert queue.stats().total == 3
    assert "did you mean '--all'?" in ran.err


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("ofer", "a"), "offer"),
        (("buried", "purg"), "purge"),
        (("ls", "--url", "memory:", "--stat", "due"), "--state"),
        (("ls", "--url", "memory:", "--state", "dew"), "due"),
    ],
)
def test_the_nearest_word_is_suggested(bare: DueQueue, words: tuple[str, ...], meant: str) -> None:
    ran = bare(*words)
    assert ran.status == USAGE
    assert f"did you mean '{meant}'?" in ran.err
