"""Every Python block of the documentation runs, and prints what the page says it prints.

The blocks of a page run in order, in one namespace and an empty folder. A `text` block right after
a Python block is its output.
"""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from pyspark.cloudpickle import register_pickle_by_value

import duequeue
import duequeue.pipeline
import duequeue.server
import duequeue.spark
import duequeue.timers
from tests.docs.pages import DOCS, PAGES, ROOT, RUNNABLE, blocks_of, name_of

POSTGRES = "postgresql://localhost/app"
REDIS = "redis://localhost:6379/0"
MARIADB = "mariadb://localhost/app"
SERVER = "http://127.0.0.1:8080"
FIXTURES = {
    POSTGRES: "postgres_url",
    REDIS: "redis_url",
    MARIADB: "mariadb_url",
    SERVER: "server_on_sqlite",
}

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


@pytest.mark.parametrize("page", RUNNABLE, ids=name_of)
def test_every_block_runs(
    page: Path,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = page.read_text("utf-8")
    for url, fixture in FIXTURES.items():
        if url in text:
            text = text.replace(url, request.getfixturevalue(fixture))
    monkeypatch.chdir(tmp_path)
    # A module of its own, because dataclasses look for the one that they were defined in.
    module = ModuleType("documented")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    # Executors do not have the page: its functions travel to them whole, as those of a script do.
    by_value: Callable[[ModuleType], None] = register_pickle_by_value
    by_value(module)
    blocks = blocks_of(text)
    assert blocks, "a page that shows how shows it in Python"
    try:
        for block in blocks:
            code = compile("\n" * block.line + block.code, name_of(page), "exec")
            exec(code, module.__dict__)  # noqa: S102 - running the page is the test
            printed = capsys.readouterr().out
            if block.output is not None:
                assert printed == block.output
    finally:
        close_queues(module)


def close_queues(module: ModuleType) -> None:
    """Close the queues that a page keeps open to its end, as the end of a program would."""
    for value in vars(module).values():
        if isinstance(value, duequeue.Queue):
            value.close()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target, heading in _LINK.findall(_FENCE.sub("", page.read_text("utf-8"))):
        if "://" in target:
            continue
        linked = page.parent / target if target else page
        assert linked.exists(), f"{target} is not there"
        if heading:
            assert heading in anchors_of(linked), f"{target} has no heading for #{heading}"


def anchors_of(page: Path) -> set[str]:
    text = _FENCE.sub("", page.read_text("utf-8"))
    return {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
        for heading in _HEADING.findall(text)
    }


def test_the_reference_names_every_public_name() -> None:
    reference = (DOCS / "reference" / "api.md").read_text("utf-8")
    modules = (
        duequeue,
        duequeue.pipeline,
        duequeue.server,
        duequeue.spark,
        duequeue.testing,
        duequeue.timers,
    )
    public = [name for module in modules for name in module.__all__]
    named = re.compile(r"(?:`|^)(\w+)", re.MULTILINE)
    assert sorted(set(public) - set(named.findall(reference))) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_table_escapes_a_bar(page: Path) -> None:
    """The site would show the backslash, although other renderers do not."""
    assert r"\|" not in _FENCE.sub("", page.read_text("utf-8"))


# Words that people search for, and the page that must have them.
SEARCHED = {
    "dead letter": "guides/retries-and-buried-messages.md",
    "visibility timeout": "guides/long-handlers.md",
    "prefetch": "guides/long-handlers.md",
    "idempotent": "guides/writing-a-handler.md",
    "pydantic": "guides/codecs.md",
    "asyncpg": "guides/with-your-own-transaction.md",
    "FastAPI": "guides/fastapi.md",
    "Sentry": "guides/observability.md",
    "Prometheus": "guides/observability.md",
}


@pytest.mark.parametrize(("word", "page"), SEARCHED.items(), ids=SEARCHED)
def test_words_that_people_search_for_are_where_they_belong(word: str, page: str) -> None:
    assert word in (DOCS / page).read_text("utf-8")
    assert word in (DOCS / "words.md").read_text("utf-8")


def test_the_site_lists_every_page_once() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    assert sorted(pages_in(site["nav"])) == sorted(pages)


def pages_in(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    for each in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from pages_in(each)
