"""The service inside other apps, in one line."""

import asyncio
import os
from typing import Any

import httpx
import pytest
from django.conf import settings as django_settings
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

from duequeue.server import app_for


def check(app: Any, prefix: str, close: Any) -> None:
    async def call() -> None:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            path = f"{prefix}/v1/queues/q/messages"
            assert (await http.put(f"{path}/a%2Fb%20c?delay=1h", content=b"1")).status_code == 200
            (found,) = (await http.get(path)).json()["messages"]
            assert found["key"] == "a/b c"
            assert (await http.get(f"{prefix}/healthz")).status_code == 200
        await close()

    asyncio.run(call())


def test_in_fastapi() -> None:
    app = FastAPI()
    due = app_for("memory:fastapi")
    app.mount("/due", due)
    check(app, "/due", due.close)


def test_in_starlette_under_a_nested_prefix() -> None:
    due = app_for("memory:starlette")
    app = Starlette(routes=[Mount("/internal", routes=[Mount("/due", due)])])
    check(app, "/internal/due", due.close)


def test_in_django(monkeypatch: pytest.MonkeyPatch) -> None:
    from django.core.asgi import get_asgi_application  # noqa: PLC0415 - after the settings

    if not django_settings.configured:
        django_settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__)
    monkeypatch.setitem(os.environ, "DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    django = get_asgi_application()
    due = app_for("memory:django")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        is_due = scope["type"] == "http" and scope["path"].startswith("/due/")
        await (
            due({**scope, "root_path": "/due"}, receive, send)
            if is_due
            else django(scope, receive, send)
        )

    check(app, "/due", due.close)


def test_by_itself_without_a_lifespan() -> None:
    due = app_for("memory:alone")
    check(due, "", due.close)


def test_a_plain_proxy_passes_requests_on_to_an_app_without_tokens() -> None:
    """It has the address and the name of this machine, and says nothing of its own client."""
    due = app_for("memory:proxied")

    async def call() -> int:
        transport = httpx.ASGITransport(due, client=("127.0.0.1", 4321))
        place = "http://127.0.0.1:8080"
        async with httpx.AsyncClient(transport=transport, base_url=place) as http:
            status = (await http.put("/v1/queues/q/messages/a")).status_code
        await due.close()
        return status

    assert asyncio.run(call()) == 200


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"Sec-Fetch-Site": "cross-site"}, id="another site"),
        pytest.param({"Sec-Fetch-Site": "same-site"}, id="another port or subdomain"),
        pytest.param({"Origin": "https://evil.example"}, id="an old browser"),
        pytest.param({"Origin": "null"}, id="a sandboxed frame"),
        pytest.param({"Origin": "http://shop.example:8000"}, id="an old browser, another port"),
    ],
)
def test_behind_cookies_another_site_can_only_read(headers: dict[str, str]) -> None:
    """The app lets in every request that has the cookie of a user, as a browser sends it."""
    due = app_for("memory:cookies", trusted=True)
    cookies = {"session": "of-ada"}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert (b"cookie", b"session=of-ada") in scope["headers"]
        await due(scope, receive, send)

    async def call() -> None:
        transport = httpx.ASGITransport(app)
        place = "http://shop.example"
        async with httpx.AsyncClient(transport=transport, base_url=place, cookies=cookies) as http:
            plain = {**headers, "Content-Type": "text/plain"}  # which needs no preflight
            path = "/v1/queues/q/messages"
            assert (await http.post(path, content=b'{"key":"a"}', headers=plain)).status_code == 403
            assert (await http.put(f"{path}/a", headers=headers)).status_code == 403
            assert (await http.delete(f"{path}?confirm=q", headers=headers)).status_code == 403
            assert (await http.get(path, headers=headers)).status_code == 200
            own = {"Origin": place}
            assert (await http.put(f"{path}/a", headers=own)).status_code == 200
            own = {"Sec-Fetch-Site": "same-origin"}
            assert (await http.put(f"{path}/a", headers=own)).status_code == 200
            assert (await http.put(f"{path}/a")).status_code == 200
        await due.close()

    asyncio.run(call())


def test_an_app_that_is_trusted_decides_who_may_call() -> None:
    async def call(trusted: bool) -> int:
        due = app_for("memory:trusted", trusted=trusted)
        transport = httpx.ASGITransport(due)
        async with httpx.AsyncClient(transport=transport, base_url="http://example.org") as http:
            status = (await http.get("/v1/queues")).status_code
        await due.close()
        return status

    assert asyncio.run(call(trusted=False)) == 403
    assert asyncio.run(call(trusted=True)) == 200
