"""The parser of the command line, which imports only the commands that it is asked for."""

from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version

from duequeue.cli.commands import COMMANDS
from duequeue.cli.strict_parser import StrictParser


def parser_for(names: Sequence[str]) -> StrictParser:
    """Return the parser of all commands, with the arguments of only the named commands."""
    parser = StrictParser(prog="duequeue", description="Deliver messages when they are due.")
    parser.add_argument("--version", action="version", version=f"duequeue {version('duequeue')}")
    commands = parser.add_subparsers(metavar="command", required=True)
    for command in COMMANDS:
        added = commands.add_parser(command.name, help=command.about)
        if command.name in names:
            import_module(command.module).add_arguments(added)
    return parser
