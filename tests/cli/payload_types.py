"""A payload type for `--codec`."""

from dataclasses import dataclass


@dataclass
class Order:
    """The payload of a typed queue."""

    total: int
