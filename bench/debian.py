"""Files of Debian packages, unpacked into the benchmark's environment without installing them."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.unavailable import Unavailable

FOLDER = Path(sys.prefix) / "debian"


def debian_program(name: str) -> Path:
    """Return a program, either this machine's or one unpacked from the package of its name."""
    found = shutil.which(name)
    return Path(found) if found else debian_file(name, f"usr/bin/{name}")


def debian_file(package: str, path: str) -> Path:
    """Return a file of a package, and download the package if necessary."""
    folder = FOLDER / package
    if not folder.exists():
        _unpack(package, folder)
    return folder / path


def _unpack(package: str, folder: Path) -> None:
    """Download and unpack a package; the folder exists as a whole or not at all."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise Unavailable(
            f"{package} is missing: it is a Debian package, and there is no apt-get here"
        )
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        passing = Path(name)
        _run(package, passing, "apt-get", "download", package)
        for archive in passing.glob("*.deb"):
            _run(package, passing, "dpkg-deb", "--extract", str(archive), "files")
        (passing / "files").rename(folder)


def _run(package: str, folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Unavailable(f"{package} is missing: `{' '.join(command[:2])}` failed: {reason}")
