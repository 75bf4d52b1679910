"""The payment service, over HTTP; its clock is moved by hand."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from sqlalchemy import create_engine, text

from duequeue import ManualClock
from examples.payments.app import PAY_WITHIN, create_app

SECOND = timedelta(seconds=1)


@asynccontextmanager
async def service(database: str, clock: ManualClock) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(database, clock)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop") as client,
    ):
        yield client


def run(
    tmp_path: Path,
    clock: ManualClock,
    scenario: Callable[[httpx.AsyncClient], Awaitable[None]],
) -> None:
    async def with_service() -> None:
        async with asyncio.timeout(60), service(database_in(tmp_path), clock) as client:
            await scenario(client)

    asyncio.run(with_service())


def database_in(folder: Path) -> str:
    return f"sqlite+aiosqlite:///{folder / 'payments.db'}"


def state_of(folder: Path, number: int) -> str:
    engine = create_engine(f"sqlite:///{folder / 'payments.db'}")
    with engine.connect() as connection:
        state = connection.execute(
            text("SELECT state FROM orders WHERE id = :number"), {"number": number}
        ).scalar_one()
    engine.dispose()
    return str(state)


async def until_decided(folder: Path, number: int) -> None:
    """Let the consumer run until it has handled the order."""
    while state_of(folder, number) == "unpaid":  # noqa: ASYNC110 - the service has no event for it
        await asyncio.sleep(0)


def test_an_order_that_nobody_pays_expires(tmp_path: Path, clock: ManualClock) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        order = (await client.post("/orders", params={"total": 40})).json()
        assert order == {"id": 1, "total": 40, "state": "unpaid"}
        clock.advance(PAY_WITHIN)
        await until_decided(tmp_path, 1)
        assert state_of(tmp_path, 1) == "expired"
        late = await client.post("/orders/1/payment")
        assert (late.status_code, late.json()["detail"]) == (409, "The order has expired.")

    run(tmp_path, clock, scenario)


def test_a_paid_order_stays_paid(tmp_path: Path, clock: ManualClock) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        await client.post("/orders", params={"total": 40})
        await client.post("/orders", params={"total": 60})
        paid = (await client.post("/orders/1/payment")).json()
        assert paid["state"] == "paid"
        clock.advance(PAY_WITHIN)
        await until_decided(tmp_path, 2)
        assert state_of(tmp_path, 1) == "paid"

    run(tmp_path, clock, scenario)


def test_orders_survive_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    async def order(client: httpx.AsyncClient) -> None:
        await client.post("/orders", params={"total": 40})

    async def wait(_: httpx.AsyncClient) -> None:
        await until_decided(tmp_path, 1)

    run(tmp_path, clock, order)
    clock.advance(PAY_WITHIN + SECOND)
    run(tmp_path, clock, wait)
    assert state_of(tmp_path, 1) == "expired"


def test_an_unknown_order_is_not_found(tmp_path: Path, clock: ManualClock) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        assert (await client.post("/orders/7/payment")).status_code == 404
        assert (await client.get("/orders/7")).status_code == 404

    run(tmp_path, clock, scenario)


def test_the_time_to_pay_can_be_shortened(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        await client.post("/orders", params={"total": 40})
        assert (await client.get("/orders/1")).json()["state"] == "unpaid"
        clock.advance(10 * SECOND)
        await until_decided(tmp_path, 1)
        assert (await client.get("/orders/1")).json() == {"id": 1, "total": 40, "state": "expired"}

    monkeypatch.setenv("PAY_WITHIN_SECONDS", "10")
    run(tmp_path, clock, scenario)
