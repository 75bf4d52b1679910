"""The contenders by name; each is imported only in the process that measures it."""

from dataclasses import dataclass
from enum import Enum
from importlib import import_module

from bench.contender import Contender


class Role(Enum):
    """The role of a contender in the comparison."""

    OURS = "ours"
    PEER = "peer"
    LIMIT = "limit"


@dataclass(frozen=True)
class Entry:
    """A contender on a store, and the entry of DueQueue that it is compared with."""

    name: str
    title: str
    store: str
    path: str
    role: Role = Role.PEER
    against: str = "duequeue"
    quick: bool = False
    slow: bool = False

    def share(self, size: int) -> int:
        """Return its share of a workload's size, a tenth if the whole would take minutes."""
        return size // 10 if self.slow else size

    def load(self) -> type[Contender]:
        """Import the contender."""
        module, _, name = self.path.partition(":")
        found: type[Contender] = getattr(import_module(f"bench.{module}"), name)
        return found


def _ours(
    name: str, title: str, store: str, face: str, *, against: str = "", quick: bool = True
) -> Entry:
    return Entry(
        name,
        f"**DueQueue**, {title}",
        store,
        f"contenders.duequeue_{face}",
        Role.OURS,
        against or name,
        quick,
    )


def _limit(
    name: str, title: str, path: str, against: str = "duequeue", store: str = "postgres"
) -> Entry:
    return Entry(name, f"*{title}*", store, f"limits.{path}", Role.LIMIT, against, quick=True)


def _on_mariadb(name: str, title: str, path: str) -> Entry:
    return Entry(
        f"{name}-mariadb",
        f"{title}, MariaDB",
        "mariadb",
        f"contenders.{path}",
        against="duequeue-mariadb",
    )


def _on_sqlite(name: str, title: str, path: str) -> list[Entry]:
    """Return an entry for each of both durabilities."""
    return [
        Entry(
            f"{name}-{synchronous}",
            f"{title}, SQLite {synchronous}",
            f"sqlite-{synchronous}",
            f"contenders.{path}",
            against=f"duequeue-sqlite-{synchronous}",
            quick=synchronous == "normal" and name == "huey-sqlite",
        )
        for synchronous in ("full", "normal")
    ]


def _service(store: str, title: str) -> list[Entry]:
    """Return the service on a store, and the library on the same store."""
    name = f"service-{store}"
    return [
        Entry(
            name,
            f"**DueQueue over HTTP**, {title}",
            store,
            "contenders.service:Service",
            Role.OURS,
            name,
            quick=True,
        ),
        _limit(
            f"in-process-{store}",
            f"limit: the library in one process, {title}",
            "in_process:InProcess",
            name,
            store,
        ),
    ]


ENTRIES = (
    _ours("duequeue", "PostgreSQL", "postgres", "postgres:OnPostgres"),
    _ours("duequeue-tasks", "PostgreSQL, asyncio", "postgres", "tasks:Tasks"),
    _ours(
        "duequeue-history",
        "PostgreSQL, with history",
        "postgres",
        "history:WithHistory",
        against="duequeue",
    ),
    _ours("duequeue-mariadb", "MariaDB", "mariadb", "mariadb:OnMariadb"),
    _ours("duequeue-mariadb-tasks", "MariaDB, asyncio", "mariadb", "tasks:Tasks", quick=False),
    _ours("duequeue-sqlite-full", "SQLite full", "sqlite-full", "blocking:Blocking", quick=False),
    _ours("duequeue-sqlite-normal", "SQLite normal", "sqlite-normal", "blocking:Blocking"),
    _ours("duequeue-redis", "Redis everysec", "redis-everysec", "redis:OnRedis"),
    _ours("duequeue-redis-tasks", "Redis everysec, asyncio", "redis-everysec", "tasks:Tasks"),
    _ours("duequeue-redis-always", "Redis always", "redis-always", "redis:OnRedis", quick=False),
    _ours("duequeue-memory", "memory", "memory", "memory:InMemory", quick=False),
    Entry("pgqueuer", "pgqueuer", "postgres", "contenders.pgqueuer:Pgqueuer", quick=True),
    Entry(
        "procrastinate",
        "procrastinate",
        "postgres",
        "contenders.procrastinate:Procrastinate",
        slow=True,
    ),
    Entry("awa", "awa", "postgres", "contenders.awa:Awa"),
    Entry("pg-boss", "pg-boss", "postgres", "contenders.pg_boss:PgBoss", quick=True),
    Entry(
        "graphile-worker",
        "graphile-worker",
        "postgres",
        "contenders.graphile_worker:GraphileWorker",
        quick=True,
    ),
    Entry(
        "bullmq-postgres", "BullMQ, PostgreSQL", "postgres", "contenders.bullmq:Bullmq", slow=True
    ),
    Entry(
        "bullmq-redis",
        "BullMQ, Redis everysec",
        "redis-everysec",
        "contenders.bullmq:Bullmq",
        against="duequeue-redis",
    ),
    *_on_sqlite("huey-sqlite", "huey", "huey:OnSqlite"),
    *_on_sqlite("litequeue", "litequeue", "litequeue:Litequeue"),
    *_on_sqlite("persist-queue", "persist-queue", "persist_queue:PersistQueue"),
    *_on_sqlite("apscheduler", "APScheduler", "apscheduler:APScheduler"),
    _on_mariadb("kombu", "kombu's SQLAlchemy transport", "kombu:OnMariadb"),
    _on_mariadb("persist-queue", "persist-queue", "persist_queue_mariadb:PersistQueue"),
    _on_mariadb("apscheduler", "APScheduler", "apscheduler:APScheduler"),
    Entry(
        "huey-redis",
        "huey, Redis everysec",
        "redis-everysec",
        "contenders.huey:OnRedis",
        against="duequeue-redis",
    ),
    Entry(
        "celery",
        "Celery, Redis everysec",
        "redis-everysec",
        "contenders.celery:OnRedis",
        against="duequeue-redis",
    ),
    Entry(
        "dramatiq",
        "dramatiq, Redis everysec",
        "redis-everysec",
        "contenders.dramatiq:OnRedis",
        against="duequeue-redis",
    ),
    Entry(
        "rq",
        "RQ, Redis everysec",
        "redis-everysec",
        "contenders.rq:OnRedis",
        slow=True,
        against="duequeue-redis",
    ),
    Entry(
        "taskiq",
        "taskiq, Redis everysec",
        "redis-everysec",
        "contenders.taskiq:OnRedis",
        against="duequeue-redis",
    ),
    Entry("beanstalkd", "beanstalkd", "beanstalkd", "contenders.beanstalkd:Beanstalkd"),
    Entry(
        "huey-redis-always",
        "huey, Redis always",
        "redis-always",
        "contenders.huey:OnRedis",
        against="duequeue-redis-always",
    ),
    _limit("seed", "the seed's algorithm", "seed:Seed"),
    _limit(
        "seed-mariadb",
        "the seed's algorithm, MariaDB",
        "seed_mariadb:Seed",
        "duequeue-mariadb",
        "mariadb",
    ),
    _limit(
        "insert",
        "limit: plain INSERT, same table",
        "insert:Insert",
        "duequeue-mariadb",
        "mariadb",
    ),
    _limit(
        "executemany",
        "limit: executemany of a plain INSERT, same table",
        "insert:ExecuteMany",
        "duequeue-mariadb",
        "mariadb",
    ),
    _limit("pgbench", "limit: pgbench, same statements", "pgbench:Pgbench"),
    _limit("copy", "limit: COPY, same table", "copy:Copy"),
    _limit("delete-returning", "limit: DELETE RETURNING, no lease", "delete_returning:Delete"),
    _limit("fsync", "limit: one fdatasync each", "fsync:Fsync"),
    Entry(
        "redis-benchmark",
        "*limit: redis-benchmark, same script*",
        "redis-everysec",
        "limits.redis_benchmark:RedisBenchmark",
        Role.LIMIT,
        "duequeue-redis",
        quick=True,
    ),
    _ours("spark", "Spark", "postgres", "spark:OnSpark"),
    Entry(
        "spark-jdbc",
        "Spark's JDBC, tuned",
        "postgres",
        "contenders.spark_jdbc:Jdbc",
        against="spark",
        quick=True,
    ),
    _limit("copy-together", "limit: COPY, two connections", "copy_together:CopyTogether", "spark"),
    *_service("memory", "memory"),
    *_service("sqlite-normal", "SQLite normal"),
    *_service("postgres", "PostgreSQL"),
    _limit(
        "empty-route",
        "limit: an empty route of Starlette",
        "empty_route:EmptyRoute",
        "service-sqlite-normal",
        "memory",
    ),
    _limit("lease-ack", "limit: a plain loop, no Spark", "lease_ack:LeaseAck", "spark"),
)
BY_NAME = {entry.name: entry for entry in ENTRIES}


def open_contender(name: str, url: str) -> Contender:
    """Open a contender on a store."""
    contender = BY_NAME[name].load()(url)
    contender.name = name
    return contender
