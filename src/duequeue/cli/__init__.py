"""The `duequeue` command; each of its commands has its own module, which is imported if it runs."""

import logging
import os
import sys
from collections.abc import Sequence

from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.log_set_up import print_error
from duequeue.cli.opening import NothingFound
from duequeue.cli.parsing import parser_for
from duequeue.errors import DueQueueError, StoreUnavailable

logger = logging.getLogger("duequeue.cli")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        return _run(words)
    except Exception:
        logging.basicConfig(format="duequeue: %(message)s")  # unless the command has its own log
        logger.exception("this is a mistake in DueQueue, not in the command; please report it")
        return ExitCode.FAILED


def _run(words: Sequence[str]) -> int:
    try:
        given = parser_for(words[:1]).parse_args(words)
        status: int = given.run(given)
    except BrokenPipeError:  # the reader of our output, such as `head`, has closed it
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - Python flushes it at exit
        return ExitCode.FAILED
    except KeyboardInterrupt:
        return _failed("interrupted", ExitCode.INTERRUPTED)
    except NothingFound as error:
        return _failed(error, ExitCode.NOTHING_FOUND)
    except StoreUnavailable as error:
        return _failed(error, ExitCode.UNAVAILABLE)
    except DueQueueError as error:
        return _failed(error, ExitCode.FAILED)
    return status


def _failed(reason: object, status: ExitCode) -> int:
    """Print the reason on one line."""
    print_error(" ".join(str(reason).split()))
    return status
