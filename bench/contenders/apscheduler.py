"""The peer APScheduler, on SQLite and MariaDB through SQLAlchemy."""

import random
import uuid
from datetime import UTC, datetime, timedelta

from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from sqlalchemy import Engine, create_engine, event

from bench.contender import Contender, Tally, timed
from bench.sqlite_file import SqliteFile

seen: list[float] = []
tally = Tally(0)


def handle(due: datetime | None) -> None:
    """Take a call; APScheduler finds functions by the name of their module."""
    if due is not None:
        seen.append((datetime.now(UTC) - due) / timedelta(milliseconds=1))
    tally.count()


class APScheduler(Contender):
    """Adds a job for each message, which runs once at its time."""

    notes = "a scheduler, not a queue; one process runs its jobs"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        store = SQLAlchemyJobStore(engine=_engine(url))
        self._scheduler = BackgroundScheduler(
            jobstores={"default": store},
            job_defaults={"misfire_grace_time": None},
            timezone=UTC,
        )

    def close(self) -> None:
        """Stop the scheduler."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)

    def offer_one(self, messages: int) -> float:
        """Add a job for later."""
        self._scheduler.start(paused=True)
        later = datetime.now(UTC) + timedelta(days=1)
        return timed(messages, lambda _: self._add(later))

    def keep_time(self, messages: int, seconds: float) -> list[float]:
        """Add jobs over the next seconds, and let them run."""
        global tally  # noqa: PLW0603 - it calls a function of this module
        tally = Tally(messages)
        self._scheduler.start(paused=True)
        start = datetime.now(UTC) + timedelta(seconds=messages / 100)
        for _ in range(messages):
            self._add(start + timedelta(seconds=random.random() * seconds))
        self._scheduler.resume()
        tally.wait()
        return seen

    def _add(self, due: datetime) -> None:
        self._scheduler.add_job(handle, "date", run_date=due, args=[due], id=uuid.uuid4().hex)


def _engine(url: str) -> Engine:
    if url.startswith("mariadb:"):
        return create_engine(url.replace("mariadb://", "mariadb+pymysql://"))
    file = SqliteFile.of(url)
    engine = create_engine(f"sqlite:///{file.path}", connect_args={"check_same_thread": False})
    event.listen(engine, "connect", lambda connection, _: file.level(connection))
    return engine
