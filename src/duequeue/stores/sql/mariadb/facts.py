"""What is known of the server that a connection leads to."""

from typing import NamedTuple


class ServerFacts(NamedTuple):
    """Which server it is, and its limits."""

    is_mysql: bool
    most_bytes: int  # of a packet, which is max_allowed_packet
    lock_seconds: int  # how long a statement of ours waits for a locked row
    number: int = 0  # of the connection


def is_mysql(version: str) -> bool:
    """Return whether a version is one of MySQL and not of MariaDB."""
    return "mariadb" not in version.lower()
