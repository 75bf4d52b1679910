"""A receiver in Python, with the official library.

pip install standardwebhooks
CALLBACK_SECRET=whsec_… PORT=8090 python examples/receivers/receiver.py
"""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["CALLBACK_SECRET"])
handled: set[str] = set()  # a real receiver keeps these ids in its database


class Receiver(BaseHTTPRequestHandler):
    """Handles each message once, even if it is called several times for it."""

    def do_POST(self) -> None:
        """Verify a call, and answer it."""
        body = self.rfile.read(int(self.headers["Content-Length"]))  # as sent, byte for byte
        try:
            payload = webhook.verify(body, dict(self.headers))
        except (WebhookVerificationError, ValueError):  # the latter if it cannot be read at all
            self.answer(401, {"error": "the signature is not valid"})
            return
        message_id = self.headers["webhook-id"]
        if message_id not in handled:
            print("handled", self.headers["duequeue-key"], json.dumps(payload), flush=True)
            handled.add(message_id)
        self.answer(200, {"handled": message_id})

    def answer(self, status: int, value: object) -> None:
        """Send a value as JSON; with the status 200, it is the response to the message."""
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing about requests; `do_POST` prints what it handles."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8090"))), Receiver)
    print(f"listening on port {server.server_port}", flush=True)
    server.serve_forever()
