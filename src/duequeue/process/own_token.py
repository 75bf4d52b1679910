"""The token of a server on this machine, which the clients of the same user find by themselves.

Each port has a file of its own, so that a token goes only to the port that it was made for.
"""

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from duequeue.errors import InvalidArgument

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
FOLDER_VARIABLE = "XDG_STATE_HOME"


def own_token_file(port: int) -> Path:
    """Return the file with the token of this user's server on a port of this machine."""
    folder = Path(os.environ.get(FOLDER_VARIABLE, "")).expanduser()
    if not folder.is_absolute():  # clients in other working directories would not find it
        folder = Path("~/.local/state").expanduser()
    return folder / "duequeue" / f"token-{port}"


def find_own_token(host: str, port: int) -> str | None:
    """Return the token for a server on this machine, if this user has one."""
    if host not in LOOPBACK:
        return None
    try:
        return own_token_file(port).read_text("ascii").strip() or None
    except (OSError, ValueError, RuntimeError):  # RuntimeError: the user has no home folder
        return None


def keep_own_token(port: int, token: str) -> str:
    """Return the token that the server on a port already has, or else make this one its token."""
    try:
        path = own_token_file(port)
        path.parent.mkdir(0o700, parents=True, exist_ok=True)
        _write_once(path, token)
        return _read_if_private(path)
    except (OSError, RuntimeError) as error:
        raise InvalidArgument(
            "token-file",
            text=f"the token of this server cannot be kept ({error}): let {FOLDER_VARIABLE} name a "
            "folder for it, or pass --token-file or --socket",
        ) from error


def remove_own_token(port: int, token: str) -> None:
    """Remove the token that a server has made, but not another one that is in its place."""
    with suppress(OSError):
        path = own_token_file(port)
        if path.read_text("ascii", "replace").strip() == token:
            path.unlink()


def _write_once(path: Path, token: str) -> None:
    """Write the file unless it exists; nobody ever sees half of it."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(token + "\n")
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink(missing_ok=True)


def _read_if_private(path: Path) -> str:
    found = path.stat()
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise InvalidArgument(
            "token-file",
            text=f"the token in {path} is not for this user alone: delete the file, and the next "
            "start makes a new one",
        )
    return path.read_text("ascii", "replace").strip()
