"""The limit of a web server: a route of Starlette that reads its request and does nothing."""

import asyncio
import sys
from functools import partial

import msgspec
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bench.contender_uvloop import UvloopContender, shared_out
from bench.http_connection import HttpConnection, connected
from bench.server_process import ServerProcess


class EmptyRoute(UvloopContender):
    """The same uvicorn, with the same requests."""

    notes = "stores nothing"

    async def open(self) -> None:
        """Start the server."""
        self._server = ServerProcess(("-m", "bench.limits.empty_route"))

    async def shut(self) -> None:
        """Stop the server."""
        self._server.stop()

    def offer_connected(self, messages: int, connections: int) -> float:
        """Send one message after the other on each connection."""
        return self.run(self._offer_connected(messages, connections))

    async def _offer_connected(self, messages: int, connections: int) -> float:
        async def offer(connection: HttpConnection, number: int) -> None:
            given = {"key": f"key-{number}", "payload": self.payload}
            await connection.post("/", msgspec.json.encode(given))

        opened = await connected(self._server.port, connections)
        return await shared_out(range(messages), [partial(offer, each) for each in opened])


def serve(port: int) -> None:
    """Serve the empty route."""

    async def empty(request: Request) -> Response:
        await request.body()
        return Response(b'{"outcome":"created"}', media_type="application/json")

    app = Starlette(routes=[Route("/", empty, methods=["POST"])])
    config = uvicorn.Config(app, port=port, log_level="error", lifespan="off", access_log=False)

    async def run() -> None:
        asyncio.get_running_loop().call_later(0.5, partial(print, "serving", flush=True))
        await uvicorn.Server(config).serve()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


if __name__ == "__main__":
    serve(int(sys.argv[-1]))
