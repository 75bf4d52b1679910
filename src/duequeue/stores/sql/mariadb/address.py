"""The address of a MariaDB or MySQL server, without secrets."""

from typing import NamedTuple


class Host(NamedTuple):
    """A server's name and port."""

    name: str
    port: int

    def __str__(self) -> str:
        shown = f"[{self.name}]" if ":" in self.name else self.name
        return f"{shown}:{self.port}"


class HostAddress(NamedTuple):
    """The hosts of a database, or its unix socket, which are safe to show."""

    hosts: tuple[Host, ...]
    unix_socket: str | None
    database: str

    def __str__(self) -> str:
        where = self.unix_socket or ",".join(map(str, self.hosts))
        return f"{where}/{self.database}"
