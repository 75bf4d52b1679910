"""What tests need is fetched before they run."""

import pytest

from tests.fixtures.debian import PackageMissing
from tests.fixtures.downloads import get_all
from tests.fixtures.servers import missing_server


@pytest.mark.parametrize("ci", ["true", "false"])
def test_what_is_missing_does_not_keep_the_rest_from_being_fetched(
    ci: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CI", ci)
    fetched: list[str] = []

    def no_package() -> None:
        raise PackageMissing("no apt-get")

    get_all(
        {
            "one": no_package,
            "two": lambda: missing_server("no compiler"),
            "three": lambda: fetched.append("three"),
        }
    )
    assert fetched == ["three"]
    assert capsys.readouterr().err.splitlines() == [
        "one could not be fetched: no apt-get",
        "two could not be fetched: no compiler",
    ]
