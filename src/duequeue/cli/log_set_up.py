"""The log of a command that runs until it is stopped."""

import argparse
import logging
import sys
import threading
from types import TracebackType
from typing import TextIO

from duequeue.cli.json_lines import JsonLines

LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("text", "json")

logger = logging.getLogger("duequeue.cli")


class CurrentStderr(logging.StreamHandler[TextIO]):
    """Logs to what is standard error at the moment, which puts lines above a status line."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        self.stream = sys.stderr
        super().emit(record)


def add_log_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments about the log."""
    parser.add_argument(
        "--log-level", choices=LOG_LEVELS, default="info", help="what to log (default: info)"
    )
    parser.add_argument(
        "--log-format",
        choices=LOG_FORMATS,
        default="text",
        help="how to log; json writes each record, with its traceback, as an object on one line "
        "(default: text)",
    )


def set_up_log(level: str, form: str) -> None:
    """Log to standard error, from this level upwards."""
    logging.basicConfig(
        level=level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        handlers=[CurrentStderr()],
    )
    if level != "debug":  # uvicorn logs each of its own steps
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    if form == "json":
        for handler in logging.getLogger().handlers:
            handler.setFormatter(JsonLines())
        logging.captureWarnings(capture=True)
        sys.excepthook = _log_uncaught
        threading.excepthook = _log_uncaught_of_thread


def print_error(line: str) -> None:
    """Print an error of the command itself, which is a record too if the log consists of JSON."""
    if any(isinstance(each.formatter, JsonLines) for each in logging.getLogger().handlers):
        logger.error("%s", line)
    else:
        print(f"duequeue: {line}", file=sys.stderr)


def _log_uncaught(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    logger.critical("the command failed: %s", kind.__name__, exc_info=(kind, error, traceback))


def _log_uncaught_of_thread(raised: threading.ExceptHookArgs) -> None:
    if raised.exc_value is not None:
        _log_uncaught(raised.exc_type, raised.exc_value, raised.exc_traceback)
