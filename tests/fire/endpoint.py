"""An endpoint of callbacks: `python -m tests.fire.endpoint PORT LOG SEED SECRET`.

It writes each post to its log when it comes, and once more when it has been answered.
"""

import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from urllib.parse import unquote

from duequeue.callbacks.receiver import is_signed
from tests.fire.entries import Call
from tests.fire.recorder import Recorder

QUEUE = "callbacks"
# Most are answered well; the last kind takes longer than a callback may.
ANSWERS = {200: 80, 503: 12, 429: 4, 0: 4}
TOO_LONG = 1.5


class Endpoint(ThreadingHTTPServer):
    """Answers at random."""

    def __init__(self, port: int, log: Path, seed: int, secret: str) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.recorder = Recorder(log)
        self.random = Random(seed)
        self.secret = secret


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Endpoint
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        facts = {
            "attempt": int(self.headers["duequeue-attempt"]),
            "id": self.headers["webhook-id"],
            "signed": is_signed(self.server.secret, self.headers, body),
        }
        call = Call("post", unquote(self.headers["duequeue-key"]), body.decode(), facts=facts)
        recorder = self.server.recorder
        clock = round(time.time() * 1000)
        number = recorder.invoked("endpoint", QUEUE, clock, call)
        status = self.server.random.choices(list(ANSWERS), list(ANSWERS.values()))[0]
        if not status:
            time.sleep(TOO_LONG)
        self.send_response(status or 503)
        self.send_header("content-length", "0")
        self.end_headers()
        self.wfile.flush()
        recorder.answered(number, clock, status)

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def log_request(self, *_: object) -> None:
        """Print nothing."""


def main() -> None:
    port, log, seed, secret = sys.argv[1:]
    endpoint = Endpoint(int(port), Path(log), int(seed), secret)
    print("ready", flush=True)
    endpoint.serve_forever()


if __name__ == "__main__":
    main()
