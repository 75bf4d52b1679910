"""Posts the messages of one queue to its endpoints as they fall due.

A push is a lease: a message is leased, posted, and settled by what the answer means. So callbacks
keep all promises of a lease: an update or a drop takes the message away from a call that is under
way, and if the process dies, its messages come again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial

from duequeue.backoff import jittered
from duequeue.callbacks.answer import Kept, Meaning, SwitchedOff, TryLater
from duequeue.callbacks.callback import called
from duequeue.callbacks.failures import words_about
from duequeue.callbacks.lane import CallPermit, Lane
from duequeue.callbacks.lanes import Lanes, may_be_for, no_endpoint
from duequeue.callbacks.lease_keeper import Held, LeaseKeeper
from duequeue.callbacks.posting import Poster
from duequeue.callbacks.rate import Slots
from duequeue.callbacks.records import StoredEndpoint
from duequeue.callbacks.settlement import Settler, settlement
from duequeue.callbacks.waits import Changes
from duequeue.drive.stoppable import StoppableFlow, Stopped
from duequeue.errors import QueueClosed
from duequeue.flows import polling
from duequeue.parts import AsyncParts
from duequeue.port.fencing import only_fetched
from duequeue.verdict import Parked, Released

logger = logging.getLogger("duequeue.push")

# A lease lasts this much longer than the timeout, so that there is time to settle the message.
MARGIN = 15_000
PAUSE_SECONDS = 1.0
# While all calls of the process are taken, a queue leases at most as many messages as it has calls,
# because these are the ones that soon make room. A queue without calls leases this many.
FEW = 10

Look = Callable[[], Awaitable[Collection[str] | None]]
OnChange = Callable[[Lane], None]


class QueuePush:
    """The push of one queue, from its first endpoint until it is stopped."""

    def __init__(
        self,
        parts: AsyncParts[bytes],
        poster: Poster,
        slots: Slots,
        entries: Collection[StoredEndpoint],
        *,
        look: Look,
        on_change: OnChange,
    ) -> None:
        self._context = parts.context
        self._parts = parts
        self._poster = poster
        self._slots = slots
        self._look = look
        self._on_change = on_change
        self._lanes = Lanes()
        self._held: dict[int, Held] = {}
        self._calls: set[asyncio.Task[None]] = set()
        self._changes = Changes()
        self._polling: StoppableFlow | None = None
        self._stopping = self._hurried = False
        self._careful = False  # whether nothing is fetched ahead for now
        self._settler = Settler(parts.context, parts.drive)
        self._keeper = LeaseKeeper(
            lambda: self._context, parts.drive, self._held.values, self._on_lost
        )
        self.update(entries)
        self._task = asyncio.create_task(self._run())

    def update(self, entries: Collection[StoredEndpoint]) -> None:
        """Go on with other definitions."""
        self._give_back(self._lanes.update(entries, self._context.now()))
        lease = self._lanes.longest_timeout() + MARGIN
        self._context = replace(self._context, lease=lease)
        self._keeper.note()
        self._reconsider()

    @property
    def lanes(self) -> list[Lane]:
        """The endpoints, as this process sees them."""
        return self._lanes.all()

    async def stop(self, seconds: float) -> None:
        """Lease no more messages, let calls end within some seconds, and give the rest back."""
        self._stopping = True
        self._reconsider()
        await asyncio.wait([self._task])
        for lane in self._lanes.busy():
            self._give_back(self._lanes.empty(lane))
        if self._calls:
            await asyncio.wait(self._calls, timeout=0 if self._hurried else seconds)
        self._cancel_calls()
        if self._calls:
            await asyncio.wait(self._calls)
        await self._keeper.close()
        await self._settler.close()

    def hurry(self) -> None:
        """Give calls no time to end, whether `stop` was called already or not."""
        self._hurried = True
        if self._stopping:
            self._cancel_calls()

    def _cancel_calls(self) -> None:
        for call in self._calls:
            _cancel(call)

    # Fetching.

    async def _run(self) -> None:
        with self._changes.following(self._context.clock):
            while not self._stopping:
                try:
                    await self._go_on()
                except Exception as error:  # noqa: BLE001 - a push outlives every error
                    self._warn("could not continue", error)
                    await self._changes.wait(jittered(PAUSE_SECONDS))

    async def _go_on(self) -> None:
        """Begin the calls that may begin, and then fetch messages or wait for a change."""
        self._begin_calls()
        now = self._context.now()
        room = self._room(now)
        if room:
            await self._fetch(room, self._lanes.seconds_to_wait(now, for_room=False))
        else:
            await self._changes.wait(self._lanes.seconds_to_wait(now, for_room=True))

    def _room(self, now: int) -> int:
        """Return how many messages to fetch; without a free slot, a few to wait for their turn."""
        room = self._lanes.room(now)
        if self._careful:
            return min(room, self._lanes.free(now), self._slots.free)
        if self._slots.free > 0 or not room:
            return room
        share = max(FEW, len(self._calls))
        waiting = 0
        for lane in self._lanes.busy():
            if self._slots.has_waiting(lane):
                waiting += len(lane.waiting)
                if waiting > share // 2:
                    return 0
        return min(room, share - waiting)

    async def _fetch(self, room: int, seconds: float | None) -> None:
        careful = self._careful
        context = replace(self._context, fetches_ahead=not careful)
        wrap = partial(Held, context.name)
        self._polling = StoppableFlow(self._parts.perform)
        try:
            found = await self._polling.run(polling.poll_many(context, wrap, room, seconds))
        except Stopped:
            return
        except QueueClosed:
            self._stopping = True
            return
        except Exception as error:  # noqa: BLE001 - a push outlives every error of its store
            self._warn("could not poll", error)
            await self._changes.wait(jittered(PAUSE_SECONDS))
            return
        finally:
            self._polling = None
        for message in found:
            self._hold(message)
        if context.lease != self._context.lease:  # the keeper goes by the new one
            self._keeper.note()
        uncertain = await self._uncertain(found)
        self._careful, premature = False, list[Held]()
        for message in found:
            if message not in uncertain and not self._place(message, careful=careful):
                premature.append(message)
        self._give_back(premature)
        if uncertain or (careful and premature):
            self._give_back(uncertain)
            self._begin_calls()
            await self._pause()

    async def _pause(self) -> None:
        """Fetch nothing for a while, even after a change, because the same messages would come."""
        with suppress(TimeoutError):
            async with asyncio.timeout(jittered(PAUSE_SECONDS)):
                while not self._stopping:
                    await self._changes.wait(None)

    async def _uncertain(self, found: list[Held]) -> list[Held]:
        """Return those of these messages that must not be placed, and not be buried either."""
        if all(self._lanes.lane_of(message) is not None for message in found):
            return []
        try:
            unreadable = await self._look()  # the endpoint may have been defined just now
        except Exception as error:  # noqa: BLE001 - the messages must go back
            self._warn("could not look for endpoints", error)
            return found
        if unreadable is None:
            return found
        without = [each for each in found if self._lanes.lane_of(each) is None]
        return [each for each in without if may_be_for(each, unreadable)]

    def _place(self, message: Held, *, careful: bool) -> bool:
        """Let a message wait for its endpoint, or bury it if it has none.

        Return False if it has to be fetched again, by a careful poll and when it can be called at
        once. Only then does the end of its lease mean that it was called without an outcome.
        """
        lane, now = self._lanes.lane_of(message), self._context.now()
        if lane is None:
            self._settle(message, Parked(no_endpoint(message)))
            return True
        is_over = message.attempt > lane.endpoint.attempts
        if is_over and not only_fetched(message.lease.token):
            times = message.attempt - 1
            words = f"attempts: called endpoint {lane.endpoint.id} {times} times without an outcome"
            self._settle(message, Parked(words))
            return True
        is_shut = lane.is_shut(now)
        self._careful |= is_over and not is_shut
        if careful:
            fits = not is_shut and lane.free(now) > len(lane.waiting)
        else:
            fits = is_shut or not is_over
        if fits:
            self._lanes.add(lane, message)
        return fits

    def _begin_calls(self) -> None:
        now = self._context.now()
        for lane in self._lanes.busy():
            self._begin_calls_of(lane, now)
        if self._lanes.busy() and self._lanes.all_shut(now):
            for lane in self._lanes.busy():
                self._give_back(self._lanes.empty(lane))

    def _begin_calls_of(self, lane: Lane, now: int) -> None:
        while lane.waiting and not self._stopping and lane.free(now):
            if self._slots.free <= 0:
                self._slots.wait(lane, partial(self._take_turn, lane))
                return
            permit = lane.begin(now)
            if permit is None:
                return
            message = self._lanes.take(lane)
            if message.lost:
                lane.end(permit, None, now)
                continue
            self._slots.take()
            message.call = asyncio.create_task(self._call(lane, message, permit))
            self._calls.add(message.call)
            message.call.add_done_callback(self._calls.discard)

    def _take_turn(self, lane: Lane) -> None:
        self._begin_calls_of(lane, self._context.now())
        self._changes.note()

    # One call.

    async def _call(self, lane: Lane, message: Held, permit: CallPermit) -> None:
        entry = lane.entry
        if self._context.keeps_history:
            message.handler_began = self._context.now()
        meaning: Meaning | None = None
        try:
            if not message.lost:  # which may happen before the first step of this task
                meaning = await self._called(entry, message)
        except asyncio.CancelledError:
            if not message.lost:  # the process stops, and the receiver may have got it
                self._settle(message, Released(timedelta(0)))
        finally:
            lane.end(permit, meaning, self._context.now())
            self._slots.give()
        try:
            if meaning is not None:
                self._log(meaning, entry, message)
                await self._act_on(meaning, entry, message)
        except Exception as error:  # noqa: BLE001 - the message comes again when its lease ends
            self._warn("could not settle", error)
        finally:
            self._let_go(message)
            self._continue(lane)

    async def _called(self, entry: StoredEndpoint, message: Held) -> Meaning:
        try:
            return await called(self._poster, entry, message, self._context.now)
        except Exception as error:  # noqa: BLE001 - it must not keep the message leased
            return TryLater(words_about(error))

    def _continue(self, lane: Lane) -> None:
        """Begin the next calls of a lane after one of its calls has ended."""
        self._on_change(lane)
        now = self._context.now()
        if lane.is_shut(now):
            self._reconsider()  # a poll that waits must not lease for it
        else:
            self._begin_calls_of(lane, now)
            self._changes.note()

    async def _act_on(self, meaning: Meaning, entry: StoredEndpoint, message: Held) -> None:
        if message.lost:
            return
        decided = settlement(meaning, entry.endpoint, message.attempt)
        if isinstance(decided, Kept):
            # If it fails, the message comes again when its lease ends, as it should.
            await self._keeper.extend_once(message, decided.lease)
        else:
            self._settler.add(message, decided, entry.endpoint.keep)

    def _log(self, meaning: Meaning, entry: StoredEndpoint, message: Held) -> None:
        if isinstance(meaning, TryLater | SwitchedOff):
            words = "queue %r: endpoint %s failed for %r (attempt %d): %s"
            about = (entry.endpoint.id, message.key, message.attempt, meaning.reason)
            logger.warning(words, self._context.name, *about)

    # What fetching and calling both need.

    def _hold(self, message: Held) -> None:
        before = self._held.get(message.lease.id)
        if before is not None:  # its lease has ended, and this is the same message once more
            before.lost = True
            self._on_lost(before)
        self._held[message.lease.id] = message

    def _let_go(self, message: Held) -> None:
        if self._held.get(message.lease.id) is message:
            del self._held[message.lease.id]

    def _settle(self, message: Held, verdict: Parked | Released) -> None:
        self._let_go(message)
        self._settler.add(message, verdict, self._context.keep)

    def _give_back(self, messages: list[Held]) -> None:
        for message in messages:
            self._let_go(message)
        self._settler.give_back([each for each in messages if not each.lost])

    def _on_lost(self, message: Held) -> None:
        self._let_go(message)
        if message.call is None:
            self._lanes.remove(message)
        else:
            _cancel(message.call)

    def _reconsider(self) -> None:
        """Look again at what may be sent, even if a poll waits for messages."""
        self._changes.note()
        if self._polling is not None:
            self._polling.stop()

    def _warn(self, what: str, error: Exception) -> None:
        logger.warning("queue %r: %s: %s", self._context.name, what, words_about(error))


def _cancel(call: "asyncio.Task[None]") -> None:
    """Cancel a call soon, because a task that is cancelled before its first step does nothing."""
    asyncio.get_running_loop().call_soon(call.cancel)
