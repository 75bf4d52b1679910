"""Measure what a failover of PostgreSQL costs: `python -m bench.failover --rounds 5`.

Four processes offer and ack while the primary is killed and its standby promoted. The report says
how many acknowledged offers are lost, how many acked messages are back, and how long the processes
had to wait, with a standby that the primary waits for and with one that it does not wait for.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from bench.servers import POSTGRES_SETTINGS
from tests.fixtures.standby import pair
from tests.servers.load import Damage, under_load

CUT_OFF = "a standby that was cut off"
HEAD = "standby                      acknowledged  lost offers  acks undone    wait"
KINDS = ("synchronous", "asynchronous", CUT_OFF)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args(arguments).rounds
    print(HEAD)
    for kind in KINDS:
        for _ in range(rounds):
            acknowledged, damage, waited = fail_over_once(kind)
            lost, back = len(damage.lost_offers), len(damage.acked_but_back)
            print(f"{kind:28} {acknowledged:12,} {lost:12,} {back:12,} {waited:5.1f} s")


def fail_over_once(kind: str) -> tuple[int, Damage, float]:
    """Return what was acknowledged before, what was broken, and the seconds until all went on."""
    with (
        tempfile.TemporaryDirectory(prefix="duequeue-failover-") as folder,
        pair(POSTGRES_SETTINGS, synchronous=kind == "synchronous") as servers,
    ):
        with under_load(servers.url("postgres"), Path(folder)) as load:
            if kind == CUT_OFF:  # the check must notice what this loses
                servers.cut_off()
            load.go_on(300)
            acknowledged = sum(map(len, load.journals))
            began = monotonic()
            servers.fail_over()
            load.go_on(1)
            waited = monotonic() - began
        return acknowledged, load.damage(servers.standby.admin_url), waited


if __name__ == "__main__":
    main()
