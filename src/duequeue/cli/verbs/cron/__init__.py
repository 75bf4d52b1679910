"""`duequeue cron` lists, pauses, resumes and runs recurring messages."""

import argparse

from duequeue.cli.verbs.cron import ls, next_ticks, pausing, run_now


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add its commands."""
    parser.description = (
        "List, pause, resume or run the recurring messages that programs have installed."
    )
    commands = parser.add_subparsers(metavar="command", required=True)
    ls.add_arguments(commands.add_parser("ls", help="list the installed crons"))
    next_ticks.add_arguments(commands.add_parser("next", help="show the next ticks"))
    pausing.add_pause(commands.add_parser("pause", help="stop the ticks of a cron"))
    pausing.add_resume(commands.add_parser("resume", help="let a cron tick again"))
    run_now.add_arguments(commands.add_parser("run-now", help="offer one extra message"))
