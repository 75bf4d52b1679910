"""A bug that is put in on purpose."""

from dataclasses import dataclass

CONTRACT = "src/duequeue/contract"


class DoesNotApply(Exception):
    """The source no longer has the text that a bug replaces, or has it more than once."""


@dataclass(frozen=True)
class Bug:
    """What is wrong, the text of a file that it replaces, and the tests that should find it.

    The file is below `src/duequeue`. The tests are arguments of pytest, and should take seconds.
    """

    name: str
    file: str
    old: str
    new: str
    tests: str

    @property
    def path(self) -> str:
        """The file below the root of the project."""
        return f"src/duequeue/{self.file}"

    def applied_to(self, source: str) -> str:
        """Return a source with the bug in it."""
        found = source.count(self.old)
        if found != 1:
            raise DoesNotApply(f"{self.file} has this {found} times instead of once:\n{self.old}")
        return source.replace(self.old, self.new)
