"""A gateway that prints what it gets; run it with `python -m examples.devices.gateway`."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ADDRESS = ("127.0.0.1", 8080)


class Gateway(BaseHTTPRequestHandler):
    """Answers one instruction."""

    def do_POST(self) -> None:
        """Print the instruction, and accept it."""
        instruction = self.rfile.read(int(self.headers["content-length"])).decode()
        print(self.path, instruction, flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing more."""


if __name__ == "__main__":
    ThreadingHTTPServer(ADDRESS, Gateway).serve_forever()
