"""Every store does what the memory store does, wherever a random walk leads."""

from functools import partial
from itertools import count

import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from duequeue.contract.faces import face_named
from duequeue.contract.phrases import PickyCodec
from tests.fixtures.stores import fresh_url
from tests.model.walk import Pair, Walk
from tests.redis.structure import check_structure


@pytest.mark.parametrize(
    ("store", "face", "walks"),
    [
        ("sqlite", "sync", 300),
        ("sqlite", "async", 20),
        ("postgres", "sync", 20),
        ("postgres", "async", 5),
        ("mariadb", "sync", 20),
        ("mariadb", "async", 5),
        ("redis", "sync", 80),
        ("redis", "async", 10),
        ("http", "sync", 8),
        ("http", "async", 5),
    ],
)
def test_a_store_agrees_with_memory(
    request: pytest.FixtureRequest, store: str, face: str, walks: int
) -> None:
    opener = face_named(face, request)
    subject_url, reference_url = fresh_url(store, request), fresh_url("memory", request)
    if store == "sqlite":
        subject_url += "?synchronous=normal"  # no walk is about what a power cut leaves
    numbers = count()

    def open_pair(name: str, **options: object) -> Pair:
        subject, reference = (
            opener.open(url, name, **options) for url in (subject_url, reference_url)
        )
        return subject, reference

    class WalkOfItsOwn(Walk):
        def __init__(self) -> None:
            self.name = f"walk {next(numbers)}"
            super().__init__(partial(open_pair, self.name))

        def teardown(self) -> None:
            if store == "redis":
                with redis.Redis.from_url(subject_url, protocol=2) as client:
                    check_structure(client, f"{self.name}|{PickyCodec.type_name}")
            super().teardown()

    run_state_machine_as_test(
        WalkOfItsOwn,
        settings=settings(
            max_examples=walks,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
