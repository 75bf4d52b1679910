"""The service; run it with `uvicorn --factory examples.payments.app:create_app`.

An order and the message that lets it expire are committed together, so there is never one without
the other. The consumer runs inside the service, on the same event loop. `PAY_WITHIN_SECONDS` in the
environment sets how long an order waits for its payment; the default is 30 minutes.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException, Request
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from duequeue import AsyncDelivery, AsyncQueue, Clock, SystemClock

PAY_WITHIN = timedelta(minutes=30)
DATABASE = "sqlite+aiosqlite:///payments.db"


class Base(DeclarativeBase):
    """The tables of the service."""


class Order(Base):
    """An order is unpaid, and later either paid or expired."""

    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    total: Mapped[int]
    state: Mapped[str] = mapped_column(default="unpaid")


class Payments:
    """The orders, and the queue of those that are not paid yet."""

    def __init__(self, engine: AsyncEngine, unpaid: AsyncQueue[int], within: timedelta) -> None:
        self._engine = engine
        self._unpaid = unpaid
        self._within = within

    async def order(self, total: int) -> Order:
        """Store an order, and the message that lets it expire unless it is paid in time."""
        async with AsyncSession(self._engine, expire_on_commit=False) as session, session.begin():
            order = Order(total=total)
            session.add(order)
            await session.flush()  # the order gets its number
            await self._unpaid.within(session).offer(f"order-{order.id}", order.id, self._within)
        return order

    async def look(self, number: int) -> Order:
        """Return an order as it is now."""
        async with AsyncSession(self._engine) as session:
            order = await session.get(Order, number)
        if order is None:
            raise HTTPException(404, "There is no such order.")
        return order

    async def pay(self, number: int) -> Order:
        """Mark an order as paid, and drop its message."""
        async with AsyncSession(self._engine, expire_on_commit=False) as session, session.begin():
            order = await session.get(Order, number, with_for_update=True)
            if order is None:
                raise HTTPException(404, "There is no such order.")
            if order.state == "expired":
                raise HTTPException(409, "The order has expired.")
            order.state = "paid"
            await self._unpaid.within(session).drop(f"order-{number}")
        return order

    async def expire(self, delivery: AsyncDelivery[int]) -> None:
        """Handle a message: if the order is still unpaid, it expires."""
        async with AsyncSession(self._engine) as session, session.begin():
            order = await session.get(Order, delivery.payload, with_for_update=True)
            if order is not None and order.state == "unpaid":
                order.state = "expired"


def payments_of(request: Request) -> Payments:
    """Return the payments that the lifespan of the service has set up."""
    found: Payments = request.app.state.payments
    return found


Service = Annotated[Payments, Depends(payments_of)]


def create_app(database: str = DATABASE, clock: Clock | None = None) -> FastAPI:
    """Return the service on a database; its queue is in the same database."""
    engine = create_async_engine(database)
    seconds = os.environ.get("PAY_WITHIN_SECONDS")
    within = timedelta(seconds=float(seconds)) if seconds else PAY_WITHIN

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        url, clock_to_use = database.replace("+aiosqlite", ""), clock or SystemClock()
        async with AsyncQueue[int].open(url, "unpaid-orders", clock=clock_to_use) as unpaid:
            app.state.payments = payments = Payments(engine, unpaid, within)
            async with unpaid.consume(payments.expire, max_attempts=10):
                yield
        await engine.dispose()

    app = FastAPI(lifespan=lifespan)

    @app.post("/orders", status_code=201)
    async def order(total: int, payments: Service) -> dict[str, object]:
        return shown(await payments.order(total))

    @app.get("/orders/{number}")
    async def look(number: int, payments: Service) -> dict[str, object]:
        return shown(await payments.look(number))

    @app.post("/orders/{number}/payment")
    async def pay(number: int, payments: Service) -> dict[str, object]:
        return shown(await payments.pay(number))

    return app


def shown(order: Order) -> dict[str, object]:
    """Return an order as clients see it."""
    return {"id": order.id, "total": order.total, "state": order.state}
