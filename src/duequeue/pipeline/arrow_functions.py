"""Functions of Arrow arrays as columns; Spark's own type hints do not know them yet."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, functions


def arrow_udf(
    function: Callable[[pa.Array], pa.Array], returns: str, *, once: bool = False
) -> Callable[..., Column]:
    """Return a column function; with `once`, Spark will not compute it twice for a row."""
    spark_functions: Any = functions
    made = spark_functions.arrow_udf(function, returns)
    column: Callable[..., Column] = made.asNondeterministic() if once else made
    return column
