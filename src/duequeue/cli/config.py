"""Defaults of the command line, from environment variables and from one file."""

import os
import tomllib
from pathlib import Path
from typing import NamedTuple

VARIABLES = {"url": "DUEQUEUE_URL", "queue": "DUEQUEUE_QUEUE", "token": "DUEQUEUE_TOKEN"}
FILE = "duequeue.toml"


class Defaults(NamedTuple):
    """The values that apply where an argument is not given.

    A token in a file counts only for the URL in that file, so that it never goes to a server that
    was named elsewhere.
    """

    url: str | None
    queue: str | None
    token: str | None
    url_of_token: str | None = None

    def token_for(self, url: str) -> str | None:
        """Return the token, if it is meant for this URL."""
        return self.token if self.url_of_token in (None, url) else None


def load_defaults() -> Defaults:
    """Read the environment, and the file in the current folder or else the user's own."""
    given = {name: os.environ.get(variable) or None for name, variable in VARIABLES.items()}
    path = next((path for path in _paths() if path.is_file()), None)
    found = {} if path is None else _read(path)
    return Defaults(
        url=given["url"] or found.get("url"),
        queue=given["queue"] or found.get("queue"),
        token=given["token"] or found.get("token"),
        url_of_token=None if given["token"] else found.get("url"),
    )


def _paths() -> tuple[Path, Path]:
    folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(FILE), Path(folder).expanduser() / "duequeue" / "config.toml"


def _read(path: Path) -> dict[str, str]:
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    for name, value in found.items():
        if name not in VARIABLES:
            raise ValueError(f"{path} has {name!r}, but the known names are {', '.join(VARIABLES)}")
        if not isinstance(value, str):
            raise ValueError(f"{path} must have a string in quotes for {name}")  # noqa: TRY004 - the file is wrong
    return found
