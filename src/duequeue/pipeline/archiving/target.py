"""The interface of the places that the archive job writes to."""

from contextlib import AbstractContextManager
from datetime import date
from typing import Protocol

from pyspark.sql import DataFrame

from duequeue.port.history_table import DayBounds


class Target(Protocol):
    """A place for archived rows, which takes all rows of a batch or none."""

    path: str

    def locked(self) -> AbstractContextManager[None]:
        """Keep other runs out during the block, if the place can do that."""

    def recover(self) -> dict[date, int]:
        """Finish what an interrupted run has begun; return its rows by day."""

    def rows_of(self, day: date) -> DataFrame | None:
        """Return the rows of a day that are there, or None if there are none."""

    def add(self, day: date, rows: DataFrame, bounds: DayBounds, there: int) -> int | None:
        """Add rows and return their number.

        Add none, and return None, unless these rows and the `there` rows that are already in the
        place are together as many as the bounds say.
        """

    def compact(self, today: date) -> None:
        """Join small files of recent days that are over."""

    def remove_before(self, day: date) -> list[date]:
        """Remove the days before that day, and return them if they are known."""
