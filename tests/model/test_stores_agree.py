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
        ("sqlite", "sync", 200),
        ("sqlite", "async", 20),
        ("postgres", "sync", 25),
        ("postgres", "async", 10),
        ("mariadb", "sync", 25),
        ("mariadb", "async", 10),
        ("redis", "sync", 100),
        ("redis", "async", 20),
        ("http", "sync", 15),
        ("http", "async", 10),
    ],
)
def test_a_store_agrees_with_memory(
    request: pytest.FixtureRequest, store: str, face: str, walks: int
) -> None:
    opener = face_named(face, request)
    urls = [fresh_url(store, request), fresh_url("memory", request)]
    numbers = count()

    def open_pair(name: str, **options: object) -> Pair:
        subject, reference = (opener.open(url, name, **options) for url in urls)
        return subject, reference

    class WalkOfItsOwn(Walk):
        def __init__(self) -> None:
            self.name = f"walk {next(numbers)}"
            super().__init__(partial(open_pair, self.name))

        def teardown(self) -> None:
            if store == "redis":
                with redis.Redis.from_url(urls[0], protocol=2) as client:
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
