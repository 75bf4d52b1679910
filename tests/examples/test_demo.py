"""The part of the demo that starts a server."""

from pathlib import Path
from typing import NoReturn

import pytest

from examples import demo


@pytest.mark.timeout(60)
def test_the_server_ends_after_an_error_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise ConnectionError

    monkeypatch.setattr(demo, "request", refuse)
    with pytest.raises(ConnectionError):
        demo.serve_for_a_moment(f"sqlite:///{tmp_path / 'demo.db'}")
