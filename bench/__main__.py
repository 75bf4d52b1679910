"""Run everything, interleaved: `python -m bench [--quick] [--rounds N]`."""

import argparse
import json
import platform
from pathlib import Path
from statistics import median

import psycopg

from bench.contenders import contender
from bench.workloads import FULL, QUICK, WORKLOADS, Scale, Workload
from tests.fixtures.postgres import OwnPostgresServer, own_server

# As a careful user would run it: durable, and with room to work.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "1GB",
    "unix_socket_directories": "",
    "max_wal_size": "4GB",
}
REPORT = Path(__file__).parent / "report"


def main() -> None:
    """Measure, print and write the report."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a minute instead of ten")
    parser.add_argument("--rounds", type=int, help="how often each figure is taken")
    given = parser.parse_args()
    scale, rounds = (QUICK, 1) if given.quick else (FULL, 3)
    with own_server(SETTINGS) as server:
        results = {
            workload.title: run(workload, server, scale, given.rounds or rounds)
            for workload in WORKLOADS
        }
        about = {"machine": platform.platform(), "postgresql": version(server)}
    REPORT.mkdir(exist_ok=True)
    (REPORT / "results.json").write_text(json.dumps({**about, "results": results}, indent=2))
    (REPORT / "results.md").write_text(table(results))
    print(f"\n{table(results)}\nWritten to {REPORT}")


def run(
    workload: Workload, server: OwnPostgresServer, scale: Scale, rounds: int
) -> dict[str, dict[str, float]]:
    """Take each figure several times, the contenders in turn, and keep the medians."""
    print(f"\n{workload.title}", flush=True)
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in workload.contenders}
    for _ in range(rounds):
        for name in workload.contenders:
            url = server.create_database()
            contender(name).prepare(url)
            taken[name].append(workload.measure(name, url, scale))
            server.drop_database(url)
            shown = ", ".join(f"{value:,.1f} {unit}" for unit, value in taken[name][-1].items())
            print(f"  {contender(name).name:<24} {shown}", flush=True)
    return {
        contender(name).name: {unit: median(one[unit] for one in each) for unit in each[0]}
        for name, each in taken.items()
    }


def table(results: dict[str, dict[str, dict[str, float]]]) -> str:
    """Return the medians as Markdown, with the ratio to the first contender."""
    lines: list[str] = []
    for title, by_contender in results.items():
        units = list(next(iter(by_contender.values())))
        lines += [f"\n| {title} | {' | '.join(units)} | ratio |", "|---" * (len(units) + 2) + "|"]
        first = next(iter(by_contender.values()))[units[0]]
        for name, figures in by_contender.items():
            cells = " | ".join(f"{figures[unit]:,.1f}" for unit in units)
            lines.append(f"| {name} | {cells} | {figures[units[0]] / first:.2f} |")
    return "\n".join(lines) + "\n"


def version(server: OwnPostgresServer) -> str:
    """Return the server's own words."""
    with psycopg.connect(server.admin_url) as connection:
        row = connection.execute("SHOW server_version").fetchone()
    assert row is not None
    return str(row[0])


if __name__ == "__main__":
    main()
