"""A receiver to try callbacks with: `python -m duequeue.callbacks.receiver`.

It listens on this machine, defines an endpoint for itself at a server, offers a message that is due
in two seconds, and prints every callback that it gets, and whether its signature is right.
"""

import argparse
import hmac
import http.client
import json
import os
import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import time
from typing import Any
from urllib.parse import quote, urlsplit

from duequeue.callbacks.signing import new_secret, parse_secret, signature
from duequeue.process.own_token import find_own_token

SERVER = "http://127.0.0.1:8080"
DELAY = "2s"
TOLERANCE_SECONDS = 300  # as in the official libraries


def is_signed(secret: str, headers: Any, body: bytes) -> bool:
    """Return whether one of the signatures of a callback is right, and its time about now."""
    timestamp = headers.get("webhook-timestamp", "")
    if not timestamp.isdecimal() or abs(int(timestamp) - time()) > TOLERANCE_SECONDS:
        return False
    identity = headers.get("webhook-id", "")
    if not identity or "." in identity:
        return False
    expected = signature([parse_secret(secret)], identity, int(timestamp), body).encode()
    given = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(expected, each.encode()) for each in given)


def handler_for(secret: str) -> type[BaseHTTPRequestHandler]:
    """Return a handler that answers 200 if the signature and the time are right, otherwise 401."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            good = is_signed(secret, self.headers, body)
            shown = {
                name: self.headers.get(f"duequeue-{name}")
                for name in ("queue", "key", "attempt", "due-at")
            }
            about = ", ".join(f"{name} {value}" for name, value in shown.items())
            print(f"{'verified' if good else 'WRONG SIGNATURE OR TIME'}: {about}", flush=True)
            print(f"  {body.decode(errors='replace')}", flush=True)
            self.send_response(200 if good else 401)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing else."""

    return Handler


def send(server: str, token: str | None, method: str, path: str, body: object) -> Any:
    """Send a request to the server, and return its answer."""
    parts = urlsplit(server)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=10)
    headers = {"content-type": "application/json"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    try:
        connection.request(method, parts.path.rstrip("/") + path, json.dumps(body), headers)
        answer = connection.getresponse()
        found = json.loads(answer.read())
    except OSError as error:
        raise SystemExit(
            f"{server} cannot be reached ({error}): start `duequeue serve --dev`"
        ) from error
    finally:
        connection.close()
    if answer.status >= 400:  # noqa: PLR2004 - the first status of an error
        raise SystemExit(f"{server} answered {answer.status}: {found.get('detail')}")
    return found


def _token_for(server: str) -> str | None:
    parts = urlsplit(server)
    own = find_own_token(parts.hostname or "", parts.port or 80)
    return os.environ.get("DUEQUEUE_TOKEN") or own


def main() -> None:
    """Receive callbacks until Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m duequeue.callbacks.receiver",
        allow_abbrev=False,
        description="Receive callbacks of a queue, verify them and print them.",
    )
    parser.add_argument("--server", default=SERVER, help=f"the server (default: {SERVER})")
    parser.add_argument("--queue", default="hello", help="the queue (default: hello)")
    parser.add_argument("--id", default="sample", help="the id of the endpoint (default: sample)")
    given = parser.parse_args()
    token, secret = _token_for(given.server), new_secret()
    with ThreadingHTTPServer(("127.0.0.1", 0), handler_for(secret)) as listening:
        url = f"http://127.0.0.1:{listening.server_port}/"
        definition = {"queue": given.queue, "url": url, "secret": secret}
        send(given.server, token, "PUT", f"/v1/endpoints/{quote(given.id, safe='')}", definition)
        message = {"key": f"hello-{secrets.token_hex(3)}", "payload": "world", "delay": DELAY}
        path = f"/v1/queues/{quote(given.queue, safe='')}/messages"
        send(given.server, token, "POST", path, message)
        print(f"offered {message['key']}, due in {DELAY}; callbacks come to {url}", flush=True)
        try:
            listening.serve_forever()
        except KeyboardInterrupt:
            print("stopped")


if __name__ == "__main__":
    main()
