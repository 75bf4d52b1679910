"""The project of the Django guide, run with Django's own test runner on both databases."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT
from tests.within.django_database import database_of

_FILE = re.compile(r"^```py\n# (\S+\.py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_URL_OF = re.compile(r"^```python\n(.*?)\n\nprint", re.MULTILINE | re.DOTALL)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    """Each store that has transactions."""
    return str(request.param)


@pytest.fixture
def project(tmp_path: Path, store_url: str) -> Path:
    """The files that the guide shows, with the settings of this database."""
    guide = (DOCS / "guides" / "django.md").read_text("utf-8")
    files = dict(_FILE.findall(guide))
    url_of = _URL_OF.search(guide)
    assert url_of is not None
    files["shop/database_url.py"] = url_of[1]
    database = {**database_of(store_url), "TEST": {"NAME": None}}
    if store_url.startswith("sqlite"):
        database["TEST"] = {"NAME": str(tmp_path / "test.sqlite3")}
    files["project/settings.py"] += f"DATABASES = {{'default': {database!r}}}\n"
    for name, text in files.items():
        path = tmp_path / "app" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return tmp_path / "app"


def run(project: Path, *arguments: str) -> str:
    """Run a command of Python in the project, and return what it prints."""
    finished = subprocess.run(
        [sys.executable, *arguments],
        cwd=project,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(project), str(ROOT / "src")]),
            "DJANGO_SETTINGS_MODULE": "project.settings",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout + finished.stderr


def test_its_tests_pass(project: Path) -> None:
    assert "Ran 2 tests" in run(project, "-m", "django", "test", "shop", "--noinput")


OFFER = """
import django
django.setup()
from django.db import connection
from shop.models import place
from shop.queues import unpaid_orders
order = place(40)
with unpaid_orders() as queue:
    print(queue.contains(f"order-{order.pk}"))
connection.cursor().execute("DROP TABLE shop_order")
"""


def test_what_it_offers_is_committed(project: Path) -> None:
    run(project, "-m", "django", "migrate", "--run-syncdb")
    assert run(project, "-c", OFFER) == "True\n"
