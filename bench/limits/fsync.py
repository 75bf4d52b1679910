"""The limit of the disk: how often it can flush."""

import re
import subprocess
import tempfile
from pathlib import Path

from bench.contender import Contender
from bench.programs import postgres_program

RATE = re.compile(r"fdatasync\s+([\d.]+) ops/sec")


class Fsync(Contender):
    """`pg_test_fsync`: one fdatasync of 8 kB for each message."""

    notes = "writes 8 kB and flushes it"

    def offer_one(self, messages: int) -> float:
        """Measure for a second; only one line of the output matters."""
        with tempfile.TemporaryDirectory(prefix="duequeue-bench-") as folder:
            program = postgres_program("pg_test_fsync")
            command: list[str | Path] = [program, "-s", "1", "-f", Path(folder, "file")]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                rates = (RATE.search(line) for line in process.stdout)
                rate = next(filter(None, rates))
                process.terminate()
        return messages / float(rate[1])
