"""Where the database is: an argument of every command. What it holds in secrets is not shown."""

import argparse
import os
import re
from typing import NoReturn

URL_VARIABLE = "DUEQUEUE_URL"

_PASSWORD = re.compile(r"(?<=://)([^:/@\s]*:)\S*(?=@)|(password=)[^&\s]*", re.IGNORECASE)


def add_url(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Let a URL come from the command line, or from the environment where `ps` does not look."""
    given = os.environ.get(URL_VARIABLE)
    parser.add_argument(
        "--url",
        default=given,
        required=required and given is None,
        help=f"for example postgresql://host/database; or set {URL_VARIABLE}",
    )


class DiscreetParser(argparse.ArgumentParser):
    """A parser whose complaints do not repeat passwords."""

    def error(self, message: str) -> NoReturn:
        """Complain and leave."""
        if message.endswith("required: --url"):
            message += f"; or set {URL_VARIABLE}"
        super().error(_PASSWORD.sub(r"\1\2***", message))
