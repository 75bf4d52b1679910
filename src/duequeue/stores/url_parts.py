"""How the URLs of stores are taken apart. No error here shows any part of a user or password."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from duequeue.errors import InvalidArgument
from duequeue.suggestions import advice


def split_options(url: str) -> tuple[str, dict[str, str]]:
    """Split `…?name=value&…` and leave the values percent-encoded."""
    location, _, query = url.partition("?")
    options: dict[str, str] = {}
    for name, _, value in (option.partition("=") for option in query.split("&") if option):
        if name in options:
            # If a password contains an unencoded ?, this may be a part of it.
            shown = "an option" if "@" in query else f"the option {name!r}"
            raise InvalidArgument("url", f"has {shown} twice; write it once")
        options[name] = value
    return location, options


def refuse_unencoded_credentials(url: str) -> None:
    """Raise if part of a password would be taken for a host, a port, a database or an option."""
    location, _, options = url.partition("?")
    authority, _, database = location.partition("://")[2].partition("/")
    # A port is made of digits; anything else after a colon is a password, up to its first `?`.
    not_a_port = re.search(r":[^@:\]]*[^@:\]0-9]", authority)
    if authority.count("@") > 1 or "@" in database or ("@" in options and not_a_port):
        raise InvalidArgument(
            "url",
            "has an unencoded @, / or ? in its user or password: write %40, %2F or %3F, and "
            "percent-encode every other special character there too",
        )


def refuse_unknown_options(options: Mapping[str, str], known: AbstractSet[str]) -> None:
    """Raise for an unknown option, and name the most similar known one."""
    # If a password contains an unencoded ?, the text after it up to the @ looks like options.
    may_show = not any("@" in name + value for name, value in options.items())
    for name in options.keys() - known:
        shown = f" {name!r}" if may_show else ""
        raise InvalidArgument(
            "url", f"has the unknown option{shown}; {advice(name, sorted(known))}"
        )
