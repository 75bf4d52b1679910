"""Every command has exactly the options that its help names, and completes none of them."""

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from duequeue import Message, Queue
from duequeue.cli.commands import COMMANDS
from duequeue.cli.parsing import parser_for
from tests.cli.conftest import DueQueue

USAGE = 2
# One of these is a value for any argument.
VALUES = ("a", "1", "5m", "a=b", "memory:a")


class Command(NamedTuple):
    words: tuple[str, ...]
    parser: argparse.ArgumentParser


def commands(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[Command]:
    """Every command that can be run, with its own parser."""
    nested = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]  # noqa: SLF001
    if not nested:
        yield Command(words, parser)
    for action in nested:
        for name, each in action.choices.items():
            yield from commands(each, (*words, name))


def value_for(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """A value that the argument accepts."""
    if action.choices is not None:
        return str(next(iter(action.choices)))
    for value in VALUES:
        try:
            parser._get_value(action, value)  # noqa: SLF001
        except argparse.ArgumentError:
            continue
        return value
    raise AssertionError(f"no value for {action.dest}")


def with_value(parser: argparse.ArgumentParser, action: argparse.Action, option: str) -> list[str]:
    values = [] if action.nargs == 0 else [value_for(parser, action)]
    return [option, *values]


def least(command: Command) -> list[str]:
    """The shortest line that the command accepts."""
    line = list(command.words)
    groups = [each for each in command.parser._mutually_exclusive_groups if each.required]  # noqa: SLF001
    chosen = [each._group_actions[0] for each in groups]  # noqa: SLF001
    for action in command.parser._actions:  # noqa: SLF001
        if action.option_strings and (action.required or action in chosen):
            line += with_value(command.parser, action, action.option_strings[-1])
        elif not action.option_strings and action.nargs not in {"?", "*"}:
            line.append(value_for(command.parser, action))
    return line


def every() -> list[Command]:
    return list(commands(parser_for([command.name for command in COMMANDS])))


def refusal(line: list[str], capsysbinary: pytest.CaptureFixture[bytes]) -> str:
    """What the parser says, which runs nothing."""
    with pytest.raises(SystemExit) as ended:
        parser_for(line[:1]).parse_args(line)
    assert ended.value.code == USAGE
    return capsysbinary.readouterr().err.decode()


@pytest.fixture(autouse=True)
def _without_defaults(bare: DueQueue) -> None:
    """No variable and no file decides which arguments are required."""


@pytest.mark.parametrize("command", every(), ids=lambda each: " ".join(each.words))
def test_every_command_refuses_options_that_it_does_not_have(
    command: Command, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    line = least(command)
    parser_for(line[:1]).parse_args(line)
    assert "unrecognized arguments: --dry_run" in refusal([*line, "--dry_run"], capsysbinary)
    for action in command.parser._actions:  # noqa: SLF001
        for option in (each for each in action.option_strings if each.startswith("--")):
            for short in {option[:-1], option[:4]} - set(command.parser._option_string_actions):  # noqa: SLF001
                said = refusal([*line, *with_value(command.parser, action, short)], capsysbinary)
                assert f"unrecognized arguments: {short}" in said


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
