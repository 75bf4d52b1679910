"""A server is killed again and again under load; after each restart it keeps what it promised."""

from pathlib import Path
from random import randint

from tests.fixtures.postgres import SETTINGS, own_server
from tests.servers.load import Damage, under_load

KILLS = 3
LONGEST = 30


def test_nothing_acknowledged_is_lost_and_nothing_acked_is_back(tmp_path: Path) -> None:
    with own_server({**SETTINGS, "fsync": "on"}) as server:
        with under_load(server.url(), tmp_path) as load:
            for _ in range(KILLS):
                load.go_on(randint(1, LONGEST))  # noqa: S311 - no secret is drawn
                server.kill()
                server.start()
            load.go_on(1)
        assert load.damage(server.admin_url) == Damage(set(), set())
