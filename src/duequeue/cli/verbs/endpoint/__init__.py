"""`duequeue endpoint` defines, lists and removes the endpoints that messages are posted to."""

import argparse

from duequeue.cli.verbs.endpoint import defining, ls, removing, rotating, switching


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add its commands."""
    parser.description = (
        "Define, list or remove the endpoints of a database or a server. `duequeue push` and "
        "`duequeue serve` post messages to endpoints when the messages are due."
    )
    commands = parser.add_subparsers(metavar="command", required=True)
    ls.add_arguments(commands.add_parser("ls", help="list the endpoints and their states"))
    defining.add_arguments(commands.add_parser("set", help="define an endpoint, or change it"))
    removing.add_arguments(commands.add_parser("rm", help="remove an endpoint"))
    rotating.add_arguments(commands.add_parser("rotate", help="sign with a new secret"))
    switching.add_enable(commands.add_parser("enable", help="call an endpoint again"))
    switching.add_disable(commands.add_parser("disable", help="stop calling an endpoint"))
