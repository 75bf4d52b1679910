"""Single requests of the HTTP API, in JSON."""

from http.client import HTTPException

from duequeue.stores.http.address import ServerAddress
from duequeue.stores.http.answers import without_answer
from duequeue.stores.http.connections import Connections

SECONDS = 30.0
JSON = "application/json"


class ServerRequests:
    """Sends requests to one server, each on a connection of its own."""

    def __init__(self, url: str, token: str | None) -> None:
        self._address = ServerAddress.from_url(url, token)
        self._connections = Connections(self._address)
        self._connections.join()

    def send(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        """Send a request, and return the status and the body of the answer."""
        headers = {**self._address.headers, "Accept": JSON, "Content-Type": JSON}
        if body is None:
            del headers["Content-Type"]
        connection = self._connections.new()
        connection.timeout = SECONDS
        try:
            connection.request(method, self._address.path + path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException) as error:
            raise without_answer(error, self._address.text) from error
        finally:
            connection.close()
