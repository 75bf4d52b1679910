# Made from cron_async.py: change that file, and run `make made`.
"""The crons of a queue, blocking."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, Generic, TypeAlias, Unpack

from typing_extensions import TypeVar

from duequeue.cron import installing
from duequeue.cron.installing import CronStatus
from duequeue.cron.running_now import run_now
from duequeue.cron.scheduler import CronEntry, Scheduler, scheduler
from duequeue.cron.tick_settings import TickOptions
from duequeue.cron.upkeep import Upkeep
from duequeue.drive.actions import Flow
from duequeue.flows.context import Context
from duequeue.process.lifetime import Closing, Lifetime
from duequeue.schedules.crontab import Crontab
from duequeue.schedules.schedule import Daily, Schedule
from duequeue.schedules.tick import ConfigHash, CronMessage

T = TypeVar("T", default=Any)

# Inside the class, `list` is a method.
Statuses: TypeAlias = list[CronStatus]


class CronHandle(Closing):
    """An installed cron on this node. Closing it stops it here, and leaves its ticks."""

    def __init__(self, prefix: str, entry: CronEntry, scheduler: Scheduler) -> None:
        self.prefix = prefix
        self._entry = entry
        self._scheduler = scheduler
        self._lifetime = Lifetime(f"the queue of cron {prefix!r}")

    @property
    def active(self) -> bool:
        """Whether the cron still runs here: not closed, uninstalled or replaced, nor in a fork."""
        return self._lifetime.is_here and self._entry in self._scheduler

    def close(self) -> None:
        """Stop, after a run in progress. Closing twice, or in a fork, is fine."""
        if self._lifetime.is_here:
            self._scheduler.remove(self._entry)

    def refresh(self) -> None:
        """Create the ticks that are missing now, as every node does from time to time."""
        self._lifetime.check_process()
        self._scheduler.run_now(self._entry)

    def __repr__(self) -> str:
        return f"<CronHandle {self.prefix!r}>"


class Cron(Generic[T]):
    """The crons of one queue.

    A tick's key is `<prefix>/<config hash>/<UTC time>`, so each comes once, however many nodes
    install the same cron.
    """

    def __init__(
        self,
        drive: Callable[[Flow[Any]], Any],
        drive_upkeep: Callable[[Flow[Any]], Any],
        context: Context[T],
    ) -> None:
        self._drive = drive
        self._drive_upkeep = drive_upkeep
        self._context = context
        self._installed: dict[CronHandle, Upkeep[T]] = {}

    def install_tick(
        self, config_hash: ConfigHash, prefix: str, messages: Iterable[CronMessage[T]]
    ) -> int:
        """Offer these ticks, remove those of other configurations, and count the new ones.

        That is one transaction. It removes and replaces only undelivered ticks.
        """
        created: int = self._drive(
            installing.install_tick(self._context, config_hash, prefix, messages)
        )
        return created

    def uninstall_tick(self, config_hash: ConfigHash, prefix: str) -> int:
        """Remove and count the undelivered ticks of exactly this prefix and configuration."""
        removed: int = self._drive(installing.uninstall_tick(self._context, config_hash, prefix))
        return removed

    def install(
        self,
        config_hash: ConfigHash,
        prefix: str,
        interval: timedelta,
        generate: Callable[[datetime], Iterable[CronMessage[T]]],
    ) -> CronHandle:
        """Install what `generate` returns for the present instant, now and every interval."""
        upkeep = installing.generated(self._context, config_hash, prefix, interval, generate)
        return self._start(prefix, upkeep)

    def install_daily_schedule(
        self,
        prefix: str,
        schedule: Daily,
        payload: T | Callable[[datetime], T],
        **options: Unpack[TickOptions],
    ) -> CronHandle:
        """Install a message at given local times of every day."""
        upkeep = installing.daily(self._context, prefix, schedule, payload, options)
        return self._start(prefix, upkeep)

    def install_periodic_tick(
        self,
        prefix: str,
        period: timedelta,
        payload: T | Callable[[datetime], T],
        **options: Unpack[TickOptions],
    ) -> CronHandle:
        """Install a message at the multiples of a period since the epoch."""
        upkeep = installing.periodic(self._context, prefix, period, payload, options)
        return self._start(prefix, upkeep)

    def install_expression(
        self,
        prefix: str,
        crontab: Crontab,
        payload: T | Callable[[datetime], T],
        **options: Unpack[TickOptions],
    ) -> CronHandle:
        """Install a message whenever a crontab expression matches."""
        upkeep = installing.expression(self._context, prefix, crontab, payload, options)
        return self._start(prefix, upkeep)

    def install_schedule(
        self,
        prefix: str,
        schedule: Schedule,
        payload: T | Callable[[datetime], T],
        *,
        config_hash: ConfigHash | None = None,
        **options: Unpack[TickOptions],
    ) -> CronHandle:
        """Put a message in whenever a schedule ticks, which may be your own.

        The hash is computed from the schedule's `text`. Without a text, pass `config_hash`.
        """
        upkeep = installing.any_schedule(
            self._context, prefix, schedule, payload, config_hash, options
        )
        return self._start(prefix, upkeep)

    def run_now(self, prefix: str) -> bool:
        """Put in one extra message of a cron that was installed here, due now.

        Return False if another node has uninstalled or replaced the cron.
        """
        plan = None
        for handle, upkeep in tuple(self._installed.items()):
            if handle.prefix == prefix and handle.active:
                plan = upkeep.plan  # of several, the one that was installed last
        done: bool = self._drive(run_now(self._context, prefix, plan))
        return done

    def pause(self, prefix: str) -> bool:
        """Remove undelivered ticks, and let no node create more; return False if already paused."""
        paused: bool = self._drive(installing.pause(self._context, prefix))
        return paused

    def resume(self, prefix: str) -> bool:
        """Create ticks again, on other nodes within a minute; return False if not paused."""
        resumed: bool = self._drive(installing.resume(self._context, prefix))
        for handle in tuple(self._installed):
            if handle.prefix == prefix:
                handle.refresh()
        return resumed

    def list(self) -> Statuses:
        """Return what is installed in this queue, by any node."""
        found: Statuses = self._drive(installing.list_crons(self._context))
        return found

    def close(self) -> None:
        """Stop every cron that was installed through this queue, as closing the queue does."""
        while self._installed:
            handle, _ = self._installed.popitem()
            handle.close()

    def _start(self, prefix: str, upkeep: Upkeep[T]) -> CronHandle:
        next_run: int | None = self._drive_upkeep(upkeep.begin())
        entry = CronEntry(self._context.clock, lambda: self._drive_upkeep(upkeep.run()))
        here = scheduler()
        handle = CronHandle(prefix, entry, here)
        if next_run is not None:
            here.add(entry, next_run)
        for other in tuple(self._installed):
            if not other.active:
                self._installed.pop(other, None)
        self._installed[handle] = upkeep
        return handle
