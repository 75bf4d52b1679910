"""A parser that obeys only what is written out, and shows no secrets."""

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from duequeue.cli.address import URL_VARIABLE, without_passwords
from duequeue.suggestions import suggestion

_CHOICE = re.compile(r"invalid choice: '?([^' ]*)'? \(choose from (.*)\)$")


class StrictParser(argparse.ArgumentParser):
    """A parser that completes no abbreviations, and names what a misspelt word may have meant.

    A command that deletes messages must not guess what its options are.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def parse_known_args(  # type: ignore[override] # nobody passes a namespace of another type
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse the arguments; refuse unknown ones here, where the options are known."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._hints(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Print the error without passwords, and exit."""
        if message.endswith("required: --url"):
            message += f"; or set {URL_VARIABLE}"
        if choice := _CHOICE.search(message):
            message += _hint(choice[1], choice[2].replace("'", "").split(", "))
        super().error(without_passwords(message))

    def _hints(self, unknown: list[str]) -> str:
        options = [each for each in self._option_string_actions if each.startswith("--")]
        given = [each.partition("=")[0] for each in unknown if each.startswith("--")]
        return "".join(_hint(each, options) for each in given)


def _hint(word: str, known: list[str]) -> str:
    found = suggestion(word, known)
    return f"; {found}" if found else ""
