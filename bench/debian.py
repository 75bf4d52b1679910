"""Programs and files of Debian packages, for the contenders that need them."""

import shutil
from pathlib import Path

from bench.unavailable import Unavailable
from tests.fixtures.debian import PackageMissing, unpacked


def debian_program(name: str) -> Path:
    """Return a program, either this machine's or one unpacked from the package of its name."""
    found = shutil.which(name)
    return Path(found) if found else debian_file(name, f"usr/bin/{name}")


def debian_file(package: str, path: str) -> Path:
    """Return a file of a package, and download the package if necessary."""
    try:
        return unpacked(package) / path
    except PackageMissing as error:
        raise Unavailable(str(error)) from error
