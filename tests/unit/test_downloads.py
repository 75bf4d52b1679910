"""What tests need is fetched before they run, and announced before it is fetched."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fixtures.debian import PackageMissing
from tests.fixtures.downloads import Download, get_all
from tests.fixtures.servers import missing_server


def download(name: str, get: Callable[[], object], kept: Path, size: float = 0) -> Download:
    return Download(name, get, size, kept, f"tests of {name}")


@pytest.mark.parametrize(("ci", "become"), [("true", "fail"), ("false", "are skipped")])
def test_what_is_missing_does_not_keep_the_rest_from_being_fetched(
    tmp_path: Path,
    ci: str,
    become: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CI", ci)
    fetched: list[str] = []

    def no_package() -> None:
        raise PackageMissing("no apt-get")

    get_all(
        [
            download("one", no_package, tmp_path / "one", 2),
            download("two", lambda: missing_server("no compiler"), tmp_path / "two", 1.5),
            download("three", lambda: fetched.append("three"), tmp_path / "three"),
        ]
    )
    assert fetched == ["three"]
    assert capsys.readouterr().err.splitlines() == [
        "fetching what tests need besides wheels, once: about 4 MB, or 20 MB more for apt-get",
        "  one: about 2 MB",
        f"one could not be fetched, so tests of one {become}: no apt-get",
        "  two: about 1.5 MB",
        f"two could not be fetched, so tests of two {become}: no compiler",
        "  three: made here",
    ]


def test_what_is_here_is_not_announced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fetched: list[str] = []
    get_all([download("one", lambda: fetched.append("one"), tmp_path)])
    assert fetched == ["one"], "it finds by itself that it is here"
    assert capsys.readouterr().err == ""
