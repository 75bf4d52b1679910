"""The log of a command that runs until it is stopped."""

import logging
import sys

LOG_LEVELS = ("debug", "info", "warning", "error")


def set_up_log(level: str) -> None:
    """Log to standard error, from this level upwards."""
    logging.basicConfig(
        level=level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    if level != "debug":  # uvicorn logs each of its own steps
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
