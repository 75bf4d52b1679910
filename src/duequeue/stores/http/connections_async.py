"""Connections of the awaiting face, which the queues of an event loop share."""

import asyncio
from functools import partial
from io import BytesIO
from math import isfinite

import aiohttp

from duequeue.errors import StoreError
from duequeue.port.store import LONGEST_CALL
from duequeue.process.shared import Shared
from duequeue.stores.http import answers
from duequeue.stores.http.address import ServerAddress
from duequeue.stores.http.answers import without_answer
from duequeue.stores.http.connections import CONNECT_SECONDS, LONGEST_IDLE, SLACK_SECONDS

SENT_AT_ONCE = 1024 * 1024


class Client:
    """The connections of one event loop, which exist for as long as they have users."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._loop = asyncio.get_running_loop()
        self._users = 0
        self._session: aiohttp.ClientSession | None = None

    def join(self) -> None:
        """Count one more user."""
        self._users += 1

    async def leave(self) -> None:
        """Count one user fewer, and close the connections after the last one."""
        self._users -= 1
        if not self._users:
            session, self._session = self._session, None
            if session is not None:
                await session.close()

    async def post(self, path: str, body: bytes, seconds: float) -> tuple[int, bytes]:
        """Send a request, and return the status and the body of the answer."""
        if seconds < LONGEST_CALL:
            return await self._ask("POST", path, body, seconds)
        asking = asyncio.create_task(self._ask("POST", path, body, seconds + SLACK_SECONDS))
        try:
            while not (await asyncio.wait([asking], timeout=answers.PROBE_EVERY))[0]:
                if not await self._answers() and not asking.done():
                    raise without_answer(answers.no_answer(), self._address.text)
            return asking.result()
        finally:
            if asking.cancel():
                await asyncio.wait([asking])

    async def _answers(self) -> bool:
        """Return whether the server answers another request."""
        try:
            status, _ = await self._ask("GET", answers.PROBE_PATH, b"", answers.PROBE_SECONDS)
        except StoreError:
            return False
        return status not in answers.NOT_FROM_SERVER

    async def _ask(self, method: str, path: str, body: bytes, seconds: float) -> tuple[int, bytes]:
        if self._session is None:
            self._session = _session(self._address)
        total = seconds if isfinite(seconds) else None
        timeout = aiohttp.ClientTimeout(total=total, sock_connect=min(CONNECT_SECONDS, seconds))
        # A large body is sent in parts, so that it does not hold up the event loop.
        data = BytesIO(body) if len(body) > SENT_AT_ONCE else body
        try:
            async with self._session.request(
                method, self._address.text + path, data=data or None, timeout=timeout
            ) as answer:
                return answer.status, await answer.read()
        except (aiohttp.ClientError, OSError) as error:
            raise without_answer(error, self._address.text) from error


def _session(address: ServerAddress) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(
        limit=0, keepalive_timeout=LONGEST_IDLE, ssl=address.tls() or True
    )
    return aiohttp.ClientSession(
        connector=connector, headers=address.headers, cookie_jar=aiohttp.DummyCookieJar()
    )


_clients: Shared[Client] = Shared()


def shared_client(address: ServerAddress) -> Client:
    """Return the connections of the running event loop to a server with one token.

    They hold on to their loop, so while they exist, no other loop has that id.
    """
    loop = asyncio.get_running_loop()
    return _clients.get((address, id(loop)), partial(Client, address))
