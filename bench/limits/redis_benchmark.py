"""The limit of a client on Redis: redis-benchmark, which is written in C, on our own script."""

import os
import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import redis

from bench.contender import Contender
from bench.unavailable import Unavailable
from duequeue.port.store import Record
from duequeue.stores.redis.commands import MOST_BYTES, Caller, record_words
from duequeue.stores.redis.keys import QueueKeys
from tests.fixtures.debian import PackageMissing, unpacked

RATE = re.compile(r"([\d.]+) requests per second")
KEYS = "9000000000"


class RedisBenchmark(Contender):
    """Sends the script of an offer, without Python."""

    notes = "written in C; decodes and returns nothing"

    def offer_one(self, messages: int) -> float:
        """Run one client."""
        return self.offer_together(messages, 1)

    def offer_together(self, messages: int, callers: int) -> float:
        """Run several clients, each on its own connection."""
        record = Record("key-__rand_int__", self.payload.encode(), 0)
        words = (0, "", "bench|json", 0, MOST_BYTES, *record_words(record))
        script = Caller(QueueKeys("bench|json")).script("offer", words, 0)
        redis.Redis.from_url(self.url).script_load(script.code.text)
        program, libraries = _program()
        address = urlsplit(self.url)
        clients = ["-p", f"{address.port}", "-c", f"{callers}", "-n", f"{messages}", "-r", KEYS]
        done = subprocess.run(
            [program, *clients, "-q", *(_text(word) for word in script.words)],
            env={"PATH": os.defpath, "LD_LIBRARY_PATH": libraries},
            capture_output=True,
            text=True,
            check=True,
        )
        (rate,) = RATE.findall(done.stdout.rpartition("\r")[2] or done.stdout)[-1:]
        return messages / float(rate)


def _program() -> tuple[Path, str]:
    """Return the program, and where its libraries are."""
    try:
        files = unpacked("redis-tools", libraries=True)
    except PackageMissing as error:
        raise Unavailable(str(error)) from error
    folders = {str(path.parent) for path in files.rglob("lib*.so*")}
    return files / "usr/bin/redis-benchmark", ":".join(sorted(folders))


def _text(word: str | bytes | int) -> str:
    return word.decode() if isinstance(word, bytes) else str(word)
