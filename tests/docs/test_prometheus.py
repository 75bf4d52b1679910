"""The rules and the configuration for Prometheus that the documentation shows."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from duequeue.callbacks.pushing import PushSettings
from duequeue.server import app_for
from tests.docs.pages import DOCS
from tests.fixtures.promtool import checked
from tests.server.served import served

TOKEN_FILE = "/etc/prometheus/duequeue.token"
RULES = "duequeue.rules.yml"
_BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_METRIC = re.compile(r"\b(?:duequeue|process)_[a-z_]+")

STALE = "0+0x20"
# A server on which all is well, for as long.
FINE = {
    'up{job="duequeue"}': "1+0x20",
    "duequeue_store_available": "1+0x20",
    'duequeue_oldest_due_timestamp_seconds{queue="mails",type="json"}': "-200+60x20",
    'duequeue_lateness_seconds_bucket{queue="mails",le="30.0"}': "0+100x20",
    'duequeue_lateness_seconds_bucket{queue="mails",le="+Inf"}': "0+100x20",
    'duequeue_messages{queue="mails",type="json",state="buried"}': "7+0x20",
    'duequeue_messages_age_seconds{queue="mails",type="json"}': "100+0x20",
    'duequeue_endpoint_state{endpoint="shop",state="active"}': "1+0x20",
    'duequeue_endpoint_state{endpoint="shop",state="open"}': STALE,
    'duequeue_pool_size{database="db"}': "10+0x20",
    'duequeue_pool_used{database="db"}': "9+0x20",
    'process_max_fds{job="duequeue"}': "1000+0x20",
    'process_open_fds{job="duequeue"}': "700+0x20",
}
# For each alert, series of twenty minutes that must raise it.
CAUSES = {
    "DueQueueDown": {'up{job="duequeue"}': STALE},
    "DueQueueStoreUnavailable": {"duequeue_store_available": STALE},
    "DueQueueMessagesWait": {
        'duequeue_oldest_due_timestamp_seconds{queue="mails",type="json"}': STALE
    },
    "DueQueueMessagesLate": {
        'duequeue_lateness_seconds_bucket{queue="mails",le="30.0"}': "0+97x20",
        'duequeue_lateness_seconds_bucket{queue="mails",le="60.0"}': "0+100x20",
        'duequeue_lateness_seconds_bucket{queue="mails",le="+Inf"}': "0+100x20",
    },
    "DueQueueMessagesBuried": {
        'duequeue_messages{queue="mails",type="json",state="buried"}': "0+1x20"
    },
    "DueQueueCountsOld": {'duequeue_messages_age_seconds{queue="mails",type="json"}': "0+60x20"},
    "DueQueueEndpointShut": {'duequeue_endpoint_state{endpoint="shop",state="active"}': STALE},
    "DueQueuePoolFull": {
        'duequeue_pool_size{database="db"}': "10+0x20",
        'duequeue_pool_used{database="db"}': "10+0x20",
    },
    "DueQueueFilesRunOut": {
        'process_max_fds{job="duequeue"}': "1000+0x20",
        'process_open_fds{job="duequeue"}': "900+0x20",
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The two files, as a reader would save them."""
    configuration, rules = _BLOCK.findall((DOCS / "guides" / "server.md").read_text("utf-8"))
    token = tmp_path / "token"
    token.write_text("dq_")
    assert TOKEN_FILE in configuration
    (tmp_path / "prometheus.yml").write_text(configuration.replace(TOKEN_FILE, str(token)))
    (tmp_path / RULES).write_text(rules)
    return tmp_path


def rules_in(folder: Path) -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((folder / RULES).read_text())["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def test_promtool_accepts_both_files(folder: Path) -> None:
    assert checked("check", "rules", "--lint-fatal", folder / RULES) == ""
    assert checked("check", "config", folder / "prometheus.yml") == ""


def test_each_rule_is_about_metrics_of_a_server(folder: Path) -> None:
    with (
        served(app_for("memory:metrics", push=PushSettings())) as server,
        server.client() as http,
    ):
        families = set(re.findall(r"^# TYPE (\S+)", http.get("/metrics").text, re.MULTILINE))
    used = {
        name.removesuffix("_bucket")
        for rule in rules_in(folder)
        for name in _METRIC.findall(rule["expr"])
    }
    assert used <= families


def test_each_alert_comes_when_it_should(folder: Path) -> None:
    alerts = [rule["alert"] for rule in rules_in(folder)]
    assert set(alerts) == CAUSES.keys()
    tests = [firing({**FINE, **CAUSES[alert]}, {alert: 1}) for alert in alerts]
    tests.append(firing(FINE, dict.fromkeys(alerts, 0)))
    about = {"rule_files": [RULES], "evaluation_interval": "1m", "tests": tests}
    (folder / "tests.yml").write_text(yaml.safe_dump(about))
    assert checked("test", "rules", folder / "tests.yml") == ""


def firing(values: dict[str, str], expected: dict[str, int]) -> dict[str, Any]:
    """Return a test for promtool: after these values, so many of these alerts fire.

    It asks for the number of alerts, so it needs no copy of their labels and texts.
    """
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": each} for name, each in values.items()],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)',
                "eval_time": "20m",
                "exp_samples": [{"value": number}],
            }
            for alert, number in expected.items()
        ],
    }
