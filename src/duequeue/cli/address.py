"""The URL of the database, an argument of every command. Its password is never shown."""

import argparse
import os
import re
from typing import NoReturn

URL_VARIABLE = "DUEQUEUE_URL"

_PASSWORD = re.compile(r"(?<=://)([^:/@\s]*:)\S*(?=@)|(password=)[^&\s]*", re.IGNORECASE)


def add_url(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Take the URL from the command line, or from the environment, where `ps` does not show it."""
    given = os.environ.get(URL_VARIABLE)
    parser.add_argument(
        "--url",
        default=given,
        required=required and given is None,
        help=f"the database, such as postgresql://host/name (default: ${URL_VARIABLE})",
    )


class PasswordHidingParser(argparse.ArgumentParser):
    """A parser that hides passwords in its error messages."""

    def error(self, message: str) -> NoReturn:
        """Print the error without passwords, and exit."""
        if message.endswith("required: --url"):
            message += f"; or set {URL_VARIABLE}"
        super().error(_PASSWORD.sub(r"\1\2***", message))
