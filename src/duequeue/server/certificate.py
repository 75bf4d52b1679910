"""The certificate of a server for HTTPS, which is read again when its files change."""

import logging
import ssl
from pathlib import Path
from time import monotonic

from duequeue.errors import InvalidArgument

logger = logging.getLogger("duequeue.server")

# The files are looked at for a new connection, but not more often than this.
LOOK_SECONDS = 1.0


class Certificate:
    """A certificate and its private key; raises if they cannot be used."""

    def __init__(self, file: str, key_file: str) -> None:
        self.file = file
        self.key_file = key_file
        self._looks_at = monotonic() + LOOK_SECONDS
        self._seen = self._stamps()
        self._newest = self._read()
        # That of every new connection, until `choose` gives it the newest.
        self.context = self._read()
        self.context.sni_callback = self.choose

    def choose(self, connection: ssl.SSLObject, _name: str | None, _first: ssl.SSLContext) -> None:
        """Give a new connection the newest certificate; this is a callback for SNI.

        OpenSSL also calls it for clients that name no server. A certificate that were loaded into
        the first context, and did not fit its key, would leave nothing that can be used.
        """
        if monotonic() >= self._looks_at:
            self._looks_at = monotonic() + LOOK_SECONDS
            if self._stamps() != self._seen:
                self.read_again()
        connection.context = self._newest

    def read_again(self) -> None:
        """Use the certificate that is in the files now, or go on with the old one."""
        self._seen = self._stamps()
        try:
            self._newest = self._read()
        except InvalidArgument as error:
            logger.error("the server goes on with its old certificate: %s", error)  # noqa: TRY400 - the place is known
        else:
            logger.info("the server has read its certificate again: %s", self.file)

    def _stamps(self) -> list[tuple[int, int, int]] | None:
        try:
            found = [Path(each).stat() for each in (self.file, self.key_file)]
        except OSError:
            return None
        return [(each.st_ino, each.st_mtime_ns, each.st_size) for each in found]

    def _read(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # Without a password, OpenSSL would ask for that of an encrypted key on the terminal.
            context.load_cert_chain(self.file, self.key_file, password=lambda: "")
        except OSError as error:
            words = f"{self.file} and tls-key {self.key_file} cannot be used: {self._fault(error)}"
            raise InvalidArgument("tls-cert", words) from error
        return context

    def _fault(self, error: OSError) -> str:
        if isinstance(error, ssl.SSLError):
            return "they are not a certificate and its private key"
        missing = [each for each in (self.file, self.key_file) if not Path(each).exists()]
        return f"No such file: {missing[0]}" if missing else error.strerror or str(error)
