"""The exit status of every command."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the exit status says; a script may rely on it."""

    DONE = 0
    FAILED = 1  # the database refused, or an argument makes no sense
    USAGE = 2  # the arguments cannot be parsed; argparse exits with this status
    UNAVAILABLE = 3  # the database or server cannot be reached now
    NOTHING_FOUND = 4  # there is no such key, queue, cron or burial, or no message is due
    PROBLEM = 5  # doctor has found a problem
    INTERRUPTED = 130  # by Ctrl-C
