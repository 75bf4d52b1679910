"""The URL of the database or server, an argument of every command. Secrets are never shown."""

import argparse
import re

from duequeue.cli.config import FILE, VARIABLES, load_defaults

URL_VARIABLE = VARIABLES["url"]

_PASSWORD = re.compile(r"(?<=://)([^:/@\s]*:)\S*(?=@)|(password=)[^&\s]*", re.IGNORECASE)


def add_url(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Take the URL from the command line, or from where `ps` does not show it."""
    default = load_defaults().url
    parser.add_argument(
        "--url",
        default=default,
        required=required and default is None,
        help="the database or server, such as postgresql://host/name or https://host "
        f"(default: ${URL_VARIABLE}, or url in {FILE})",
    )


def without_passwords(text: str) -> str:
    """Return a text in which the passwords of URLs are hidden."""
    return _PASSWORD.sub(r"\1\2***", text)
