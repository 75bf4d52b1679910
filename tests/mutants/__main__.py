"""`python -m tests.mutants [WORDS]` puts in one bug after the other, and runs the tests of each.

With words, only the bugs whose names contain them are tried.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.mutants.bug import Bug
from tests.mutants.bugs import BUGS
from tests.mutants.trial import Result, Trial, Verdict


def main() -> int:
    only = _only()
    bugs = [bug for bug in BUGS if only in bug.name]
    verdicts: dict[str, Verdict] = {}
    with tempfile.TemporaryDirectory(prefix="duequeue-mutants-") as folder:
        trial = Trial(Path(folder).resolve())
        if not trial.imported_from().is_relative_to(Path(folder).resolve()):
            print(f"the tests would import {trial.imported_from()} instead of the copy")
            return 1
        try:
            for number, bug in enumerate(bugs, 1):
                print(f"{number} of {len(bugs)}: {bug.name}", flush=True)
                verdicts[bug.name] = _judged(trial, bug)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    return _conclude(verdicts, len(bugs))


def _judged(trial: Trial, bug: Bug) -> Verdict:
    began = time.monotonic()
    verdict = trial.judge(bug)
    took = time.monotonic() - began
    print(f"    {verdict.result.value} after {took:.0f} s  {verdict.about}", flush=True)
    return verdict


def _conclude(verdicts: dict[str, Verdict], number: int) -> int:
    """Print a table of all bugs, the caught ones first, and return the exit status."""
    width = max(len(result.value) for result in Result)
    print()
    for name, verdict in sorted(verdicts.items(), key=lambda each: each[1].result.name):
        print(f"{verdict.result.value:<{width}}  {name}")
    caught = sum(verdict.result is Result.CAUGHT for verdict in verdicts.values())
    print(f"\n{caught} of {number} bugs were caught")
    return 0 if caught == number else 1


def _only() -> str:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("words", nargs="*", help="words of the names of the bugs to try")
    return " ".join(parser.parse_args().words)


if __name__ == "__main__":
    sys.exit(main())
