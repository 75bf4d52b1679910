"""The response to a message, as a producer reads it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Response:
    """What a consumer has answered, and when."""

    value: Any
    responded_at: datetime
