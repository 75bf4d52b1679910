"""The primary dies under load and its standby takes over; clients find it by themselves."""

from pathlib import Path

from tests.fixtures.postgres import SETTINGS
from tests.fixtures.standby import pair
from tests.servers.load import Damage, under_load


def test_with_a_synchronous_standby_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    with pair(SETTINGS, synchronous=True) as servers:
        with under_load(servers.url("postgres"), tmp_path) as load:
            servers.fail_over()
            load.go_on()
        assert load.damage(servers.standby.admin_url) == Damage(set(), set())
