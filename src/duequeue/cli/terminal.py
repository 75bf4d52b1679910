"""A terminal with a status line at the bottom; all other output goes above that line."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from threading import RLock
from typing import Any, TextIO, cast

ERASE_LINE = "\r\x1b[K"


class Terminal:
    """Standard output, or another stream; `live` means that it is a terminal."""

    def __init__(self, screen: TextIO | None = None, *, quiet: bool = False) -> None:
        self._screen = screen or sys.stdout
        self._quiet = quiet
        self._lock = RLock()
        self._shown = ""
        self._at_line_start = True
        self.live = self._screen.isatty() and not quiet

    def show(self, line: str) -> None:
        """Replace the status line."""
        with self._lock:
            self._shown = line[: shutil.get_terminal_size().columns - 3]  # room for ^C
            if self._at_line_start:
                self._screen.write(ERASE_LINE + self._shown)
                self._screen.flush()

    def print(self, line: str) -> None:
        """Print a line that stays, in place of the status line."""
        if self._quiet:
            return
        with self._lock:
            self._shown = ""
            self._screen.write(f"{ERASE_LINE if self.live else ''}{line}\n")
            self._screen.flush()

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Move all other output of this process above the status line."""
        if self._quiet:
            yield
            return
        with (
            redirect_stdout(self._above(sys.stdout)),
            redirect_stderr(self._above(sys.stderr)),
        ):
            yield

    def write_above(self, stream: TextIO, text: str) -> int:
        """Print text above the status line; it may end in the middle of a line."""
        with self._lock:
            # This is one write, because another process could show its status line between two.
            stream.write(ERASE_LINE + text if self._at_line_start else text)
            self._at_line_start = text.endswith("\n")
            stream.flush()
            if self._at_line_start:
                self._screen.write(self._shown)
                self._screen.flush()
        return len(text)

    def _above(self, stream: TextIO) -> TextIO:
        return cast("TextIO", Above(self, stream)) if stream.isatty() else stream


class Above:
    """A stream that prints above the status line of a terminal."""

    def __init__(self, terminal: Terminal, stream: TextIO) -> None:
        self._terminal = terminal
        self._stream = stream

    def write(self, text: str) -> int:
        """Print text above the status line."""
        return self._terminal.write_above(self._stream, text) if text else 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
