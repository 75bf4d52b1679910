"""A small disk of its own, which can be filled: a tmpfs, if this process may mount one."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BALLAST = "ballast"
PIECE = 4096


class Disk:
    """A folder whose space is limited."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self) -> None:
        """Leave no byte free."""
        with Path(self.folder, BALLAST).open("wb", buffering=0) as ballast:
            try:
                ballast.write(bytes(shutil.disk_usage(self.folder).free))
                while True:
                    ballast.write(bytes(PIECE))
            except OSError:
                return

    def free(self) -> None:
        """Give the space back."""
        Path(self.folder, BALLAST).unlink(missing_ok=True)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Disk | None]:
    """Mount a tmpfs in this folder; None if we may not mount."""
    folder.mkdir(parents=True, exist_ok=True)
    options = ["-t", "tmpfs", "-o", f"size={megabytes}m", "duequeue-fire", str(folder)]
    if not _runs("mount", *options):
        yield None
        return
    try:
        yield Disk(folder)
    finally:
        _runs("umount", "--lazy", str(folder))


def _runs(command: str, *arguments: str) -> bool:
    program = shutil.which(command)
    if program is None:
        return False
    return subprocess.run([program, *arguments], check=False, capture_output=True).returncode == 0
