"""Measure DueQueue, its peers and the limits: `python -m bench [spark|service] [--quick]`."""

import argparse
import signal

from bench.contenders import BY_NAME
from bench.machine import describe
from bench.plots import draw
from bench.publish import publish, report_folder
from bench.report import write_report
from bench.results import Results
from bench.running import Run
from bench.servers import Servers
from bench.workloads import SUITES, WORKLOADS_BY_NAME


def main() -> None:
    """Measure, then print and write the report, also after an interruption."""
    given = _arguments()
    folder = report_folder(given.suite)
    if given.publish:
        publish(given.suite)
        return
    workloads = [WORKLOADS_BY_NAME[name] for name in given.only or []] or SUITES[given.suite]
    entries = [BY_NAME[name] for name in given.contender or BY_NAME]
    if given.quick:
        workloads = [workload for workload in workloads if workload.quick]
        entries = [entry for entry in entries if entry.quick or given.contender]
    rounds = given.rounds or (1 if given.quick else None)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(
            number, signal.default_int_handler
        )  # a shell ignores SIGINT in the background
    results = Results()
    with Servers() as servers:
        results.about = describe(servers)
        try:
            Run(workloads, entries, rounds, given.quick, given.size).into(results, servers)
        except KeyboardInterrupt:
            print("\ninterrupted; here are the results so far")
    print(f"\n{write_report(results, folder)}")
    draw(results, folder)
    print(f"Written to {folder}")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument(
        "suite",
        nargs="?",
        choices=list(SUITES),
        default="queues",
        help="what to measure (default: queues)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="measure only the most important workloads"
    )
    parser.add_argument("--rounds", type=_positive, help="how many times to measure each figure")
    parser.add_argument(
        "--publish", action="store_true", help="put the last report into docs/benchmarks.md"
    )
    parser.add_argument(
        "--size", type=_positive, help="the size of every workload, to try things out"
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="WORKLOAD",
        help="measure only this workload; may be repeated",
    )
    parser.add_argument(
        "--contender",
        action="append",
        metavar="NAME",
        choices=list(BY_NAME),
        help="measure only this contender; may be repeated",
    )
    given = parser.parse_args()
    known = [workload.name for workload in SUITES[given.suite]]
    for name in given.only or []:
        if name not in known:
            parser.error(
                f"--only {name} is not a workload of {given.suite}, which has: {', '.join(known)}"
            )
    return given


if __name__ == "__main__":
    main()
