"""A copy of the project, in which bugs are tried, so that nobody's working tree is touched."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from importlib.util import cache_from_source
from pathlib import Path
from typing import NamedTuple

from tests.mutants.bug import Bug, DoesNotApply

ROOT = Path(__file__).parents[2]
PARTS = ("conftest.py", "constraints.txt", "examples", "pyproject.toml", "src", "tests")
# Nothing is left to chance, so that a bug is found by the same test each time. A test that hangs
# because of a bug fails after a while.
PYTEST = (
    "-m pytest -x -q -n 0 -p no:randomly -p no:cacheprovider --hypothesis-seed=0 "
    "--tb=no --timeout=90"
)
PASSED, FAILED = 0, 1  # pytest exits with other numbers if it could not run the tests


class Result(Enum):
    """What came of a bug."""

    CAUGHT = "caught"
    MISSED = "MISSED"
    STALE = "DOES NOT APPLY"
    UNSOUND = "CANNOT BE JUDGED"


class Verdict(NamedTuple):
    """What came of a bug, and the test that found it, or why nothing could be found."""

    result: Result
    about: str = ""


class Trial:
    """Runs the tests of bugs in a copy of the project, in a folder of its own."""

    def __init__(self, folder: Path, root: Path = ROOT) -> None:
        self._folder = folder
        self._sound: dict[str, str] = {}
        # A path that begins with the copy keeps Python from finding the source that is installed.
        self._environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
        ignore = shutil.ignore_patterns("__pycache__", "node_modules")
        for part in PARTS:
            if (root / part).is_dir():
                shutil.copytree(root / part, folder / part, ignore=ignore)
            elif (root / part).exists():
                shutil.copy2(root / part, folder / part)

    def imported_from(self) -> Path:
        """Return the folder of the package that a process of a test imports, wherever it runs."""
        program = "import duequeue; print(duequeue.__path__[0])"
        command = [sys.executable, "-c", program]
        found = subprocess.check_output(command, cwd="/", env=self._environment, text=True)
        return Path(found.strip())

    def judge(self, bug: Bug) -> Verdict:
        """Try a bug, after its tests have passed without it."""
        complaint = self._complaint_about(bug.tests)
        if complaint:
            return Verdict(Result.UNSOUND, complaint)
        try:
            with self._with(bug):
                status, found = self._run(bug.tests)
        except DoesNotApply as error:
            return Verdict(Result.STALE, str(error))
        if status == PASSED:
            return Verdict(Result.MISSED)
        return Verdict(Result.CAUGHT if status == FAILED else Result.UNSOUND, found)

    def _complaint_about(self, tests: str) -> str:
        """Return why tests cannot judge a bug, or nothing; the answer is remembered."""
        if tests not in self._sound:
            status, found = self._run(tests)
            reason = f"without the bug, too: {found}"
            self._sound[tests] = "" if status == PASSED else reason
        return self._sound[tests]

    @contextmanager
    def _with(self, bug: Bug) -> Iterator[None]:
        file = self._folder / bug.path
        sound = file.read_text("utf-8")
        _write(file, bug.applied_to(sound))
        try:
            yield
        finally:
            _write(file, sound)

    def _run(self, tests: str) -> tuple[int, str]:
        """Run tests, and return the status of pytest and the first test that failed."""
        command = [sys.executable, *shlex.split(f"{PYTEST} {tests}")]
        log = self._folder / "pytest.log"
        with (
            log.open("wb") as written,
            subprocess.Popen(
                command,
                cwd=self._folder,
                env=self._environment,
                stdout=written,
                stderr=subprocess.STDOUT,
            ) as pytest,
        ):
            try:
                status = pytest.wait()
            except KeyboardInterrupt:
                pytest.wait()  # it has heard Ctrl-C too, and stops the servers that it has started
                raise
        lines = log.read_text("utf-8", "replace").strip().splitlines()
        failed = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
        return status, (failed or lines[-1:] or ["pytest said nothing"])[0]


def _write(file: Path, text: str) -> None:
    """Write a source, and remove what Python has compiled of it.

    Python may not notice a change that comes within a second and keeps the size.
    """
    file.write_text(text, "utf-8")
    Path(cache_from_source(str(file))).unlink(missing_ok=True)
