"""Blocking modules that are made from their awaiting twins are up to date."""

import re
import subprocess
import sys

from tests.docs.pages import ROOT
from tools import made

ALL = {path: path.read_text("utf-8") for path in made.SOURCE.rglob("*.py")}


def test_they_are_what_would_be_made() -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "tools.made", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_they_say_in_their_first_line_where_to_change_them() -> None:
    marked = {path for path, text in ALL.items() if text.startswith("# Made from ")}
    assert marked == {made.SOURCE / name for name in made.MADE}


def test_only_words_that_occur_are_replaced() -> None:
    twins = "".join(ALL[made.twin_of(made.SOURCE / name)] for name in made.MADE)
    assert [each for each in made.WORDS if not re.search(made.pattern_of(each), twins)] == []


def test_comments_stay_and_names_change() -> None:
    awaiting = """
async def send_async(link: psycopg.AsyncConnection) -> None:  # awaited by `AsyncQueue`
    async with link.transaction():
        await run_async(link, async_cursor_on(link))
"""
    assert (
        made.blocking(awaiting)
        == """
def send(link: psycopg.Connection) -> None:  # awaited by `Queue`
    with link.transaction():
        run(link, cursor_on(link))
"""
    )


def test_words_are_found_across_lines() -> None:
    assert made.blocking("in the pool that this event\n    loop shares.") == (
        "in the pool that this process shares."
    )
