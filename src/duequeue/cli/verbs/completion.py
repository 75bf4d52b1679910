"""`duequeue completion` prints a script that completes commands in a shell."""

import argparse

from duequeue.cli.completing import words_by_command
from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.shell_scripts import SCRIPTS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Print a script that completes commands, arguments and their values. In bash: "
        'eval "$(duequeue completion bash)". In zsh: eval "$(duequeue completion zsh)". In fish: '
        "duequeue completion fish | source"
    )
    parser.add_argument("shell", choices=sorted(SCRIPTS))
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print the script."""
    print(SCRIPTS[given.shell](words_by_command()), end="")
    return ExitCode.DONE
