"""`duequeue buried` lists buried messages, puts them back, or deletes them."""

import argparse

from duequeue.cli.verbs.buried import ls, purge, revive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the three commands."""
    parser.description = "List buried messages, put them back into the queue, or delete them."
    commands = parser.add_subparsers(metavar="command", required=True)
    ls.add_arguments(commands.add_parser("ls", help="list buried messages"))
    revive.add_arguments(commands.add_parser("revive", help="put them back into the queue"))
    purge.add_arguments(commands.add_parser("purge", help="delete them"))
