"""Reads what the server reports of every statement of a call: pages, rows and log records."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from tests.sql.wire import Traffic

# What auto_explain would write to the server's log comes over the wire instead.
REPORT_COSTS = {
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_buffers": "on",
    "auto_explain.log_wal": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_format": "json",
    "auto_explain.log_level": "notice",
}


class Cost(NamedTuple):
    """What a call cost the server."""

    statements: int
    round_trips: int
    transactions: int
    log_records: int
    log_bytes: int
    pages: int
    rows: int


def reporting(url: str) -> str:
    """Return the URL of the same wire, on which the server reports costs."""
    options = " ".join(f"-c {name}={value}" for name, value in REPORT_COSTS.items())
    return f"{url}&options={quote(options)}"


def cost_of(traffic: Traffic) -> Cost:
    """Add up what was reported."""
    plans = list(_plans(traffic.notices))
    roots = [plan[0] for plan in plans]
    return Cost(
        traffic.statements,
        traffic.round_trips,
        traffic.transactions,
        sum(root["WAL Records"] for root in roots),
        sum(root["WAL Bytes"] for root in roots),
        sum(root["Shared Hit Blocks"] + root["Shared Read Blocks"] for root in roots),
        sum(_rows(node) for plan in plans for node in plan),
    )


def _plans(notices: list[str]) -> Iterator[list[dict[str, Any]]]:
    for notice in notices:
        _, reported, plan = notice.partition("plan:\n")
        if reported:
            yield list(_nodes(json.loads(plan)["Plan"]))


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


def _rows(node: dict[str, Any]) -> int:
    """How many rows of a table a node looked at, kept or not."""
    if "Relation Name" not in node or node["Node Type"] == "ModifyTable":
        return 0
    looked_at = float(node["Actual Rows"]) + float(node.get("Rows Removed by Filter", 0))
    return round(looked_at * int(node["Actual Loops"]))
