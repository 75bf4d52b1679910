"""A receiver for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.callbacks.certificates import Certificates, new_certificates
from tests.callbacks.receiver import Receiver, running_receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that answers 200, unless the test plans something else."""
    with running_receiver() as running:
        yield running


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    """An authority of the day."""
    return new_certificates(tmp_path)
