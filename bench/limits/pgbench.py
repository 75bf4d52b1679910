"""The limit of a client: pgbench, which is written in C, on our own statements."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

from bench.contender import Contender
from bench.contenders.duequeue_blocking import Blocking
from bench.programs import postgres_program
from duequeue.stores.sql.catalogue import load_queries
from duequeue.stores.sql.postgres.settings import SESSION_SETTINGS

RATE = re.compile(r"tps = ([\d.]+) \(without")
THREADS = 2
LEASE = "7"
NOW = "CAST(extract(epoch FROM now()) * 1000 AS bigint)"

OFFER = r"""
\set number random(1, 9000000000000000)
{offer_messages};
"""
# The mark advances as our own does.
POLL_ACK = r"""
{claim_messages} \gset
\set after_due :due_at
\set after_id :id
{remove_messages};
"""


class Pgbench(Contender):
    """Uses prepared statements over the same protocol, without Python."""

    notes = "written in C; decodes and returns nothing"

    def load(self, messages: int) -> None:
        """Fill the same table."""
        ours = Blocking(self.url)
        ours.load(messages)
        ours.close()

    def offer_one(self, messages: int) -> float:
        """Run one client."""
        return self.offer_together(messages, 1)

    def offer_together(self, messages: int, callers: int) -> float:
        """Run several clients, each on its own connection."""
        self.load(1)  # creates the tables
        payload = self.payload.encode().hex()
        script = OFFER.format(
            offer_messages=_filled(
                "offer_messages",
                key="'{key-' || :number || '}'",
                payload=f"""'{{"\\\\x{payload}"}}'""",
                due_at=f"ARRAY[{NOW}]",
                headers="'{NULL}'",
                expires_at="'{NULL}'",
                now=NOW,
                kind_id="1",
                replace="'{true}'",
                note="NULL",
                lock_timeout="NULL",
            )
        )
        return self._run(script, messages, callers)

    def poll_ack_one(self, messages: int) -> float:
        """Run one client with two statements."""
        script = POLL_ACK.format(
            claim_messages=_filled(
                "claim_messages",
                now=NOW,
                until=f"{NOW} + 300000",
                token=LEASE,
                kind_id="1",
                limit="1",
            ),
            remove_messages=_filled(
                "remove_messages", id="ARRAY[:id]", token=f"ARRAY[{LEASE}]", shared_token=LEASE
            ),
        )
        return self._run(script, messages, 1)

    def _run(self, script: str, messages: int, clients: int) -> float:
        with tempfile.TemporaryDirectory(prefix="duequeue-bench-") as folder:
            file = Path(folder, "script.sql")
            file.write_text(script)
            command: list[str | Path] = [
                postgres_program("pgbench"),
                *("--no-vacuum", "--protocol=prepared", "--define=after_due=0"),
                *("--define=after_id=0", f"--client={clients}", f"--file={file}"),
                *(f"--jobs={min(clients, THREADS)}", f"--transactions={messages // clients}"),
                self.url,
            ]
            environment = {**os.environ, "PGOPTIONS": _options()}
            finished = subprocess.run(
                command, capture_output=True, text=True, env=environment, check=False
            )
        found = RATE.search(finished.stdout)
        if found is None:
            raise RuntimeError(finished.stderr)
        return messages / float(found[1])


def _filled(name: str, **values: str) -> str:
    """Return one of our statements with its parameters filled in."""
    text = load_queries("postgres")[name]
    for parameter, value in values.items():
        text = re.sub(rf"(?<!:):{parameter}\b", value.replace("\\", r"\\"), text)
    return text.rstrip().removesuffix(";")


def _options() -> str:
    """Return the settings of our own sessions in the form of PGOPTIONS."""
    settings = re.findall(r"SET ([\w.]+) = '?([\w ]+)'?", SESSION_SETTINGS)
    return " ".join(f"-c {name}={value}".replace(" c", "\\ c") for name, value in settings)
