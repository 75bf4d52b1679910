"""A Spark cluster on this machine, from the programs in the wheel."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyspark

from duequeue.spark.programs import find_java

LOOPBACK = "127.0.0.1"
PATIENCE_SECONDS = 120
HOME = Path(pyspark.__file__).parent


@dataclass
class Cluster:
    """A running cluster."""

    master: str
    workers: list[int]

    def kill_an_executor(self) -> int | None:
        """Kill one of the executors, and return its process id; return None if there is none.

        Executors are the child processes of the workers.
        """
        for worker in self.workers:
            for child in psutil.Process(worker).children():
                child.send_signal(signal.SIGKILL)
                return int(child.pid)
        return None


@contextmanager
def standalone(folder: Path, workers: int = 2, memory: str = "1g") -> Iterator[Cluster]:
    """Run a cluster during the block, with its logs and files in the folder."""
    find_java()
    os.environ["SPARK_LOCAL_IP"] = LOOPBACK
    port = free_port()
    master = f"spark://{LOOPBACK}:{port}"
    with ExitStack() as running:
        place = ("--host", LOOPBACK, "--webui-port", "0")
        running.enter_context(
            _program("master.Master", folder / "master", "ALIVE", *place, "--port", str(port))
        )
        pids = []
        for number in range(workers):
            home = folder / f"worker{number}"
            size = ("--cores", "1", "--memory", memory, "--work-dir", str(home))
            pids.append(
                running.enter_context(
                    _program("worker.Worker", home, "registered", *place, *size, master)
                )
            )
        yield Cluster(master, pids)


@contextmanager
def _program(name: str, folder: Path, ready: str, *arguments: str) -> Iterator[int]:
    """Run one of Spark's programs; the block starts when its log contains the word `ready`."""
    folder.mkdir(parents=True)
    log = folder / "log"
    command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
    with (
        log.open("w") as written,
        subprocess.Popen(command, stdout=written, stderr=subprocess.STDOUT) as process,
        log.open() as reading,
    ):
        try:
            _await(process, reading.readline, ready)
            yield process.pid
        finally:
            process.terminate()


def _await(process: "subprocess.Popen[bytes]", read_line: Callable[[], str], word: str) -> None:
    gives_up_at = time.monotonic() + PATIENCE_SECONDS
    while word not in (line := read_line()):
        if not line and process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with {process.returncode}: see its log")
        if time.monotonic() > gives_up_at:
            raise RuntimeError(f"{process.args!r} is not ready after {PATIENCE_SECONDS} seconds")
        if not line:
            time.sleep(0.1)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port
