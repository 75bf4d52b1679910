"""A request that says something which its route does not know is refused, not obeyed."""

import re
from typing import Any

import httpx
import pytest

from duequeue.server.app import ROUTES
from duequeue.server.routing import Route
from tests.server.served import Served

REFUSED = 422
ROUTES_WITHOUT_BODY = [each for each in ROUTES.all if each.body is None]
PARTS = re.compile(r"\{\w+\}")


def named(route: Route) -> str:
    return f"{route.method} {route.path}"


def asked(http: httpx.Client, route: Route, query: str = "", body: bytes = b"") -> httpx.Response:
    return http.request(route.method, PARTS.sub("x", route.path) + query, content=body)


@pytest.mark.parametrize("route", ROUTES.all, ids=named)
def test_every_route_refuses_parameters_that_it_does_not_know(
    http: httpx.Client, route: Route
) -> None:
    answer = asked(http, route, "?dry_run=true")
    assert (answer.status_code, answer.json()["argument"]) == (REFUSED, "dry_run"), answer.text


@pytest.mark.parametrize("route", ROUTES.all, ids=named)
def test_a_part_of_the_path_is_not_a_parameter_of_the_query(
    http: httpx.Client, route: Route
) -> None:
    parts = {each.name for each in route.parameters if each.place == "path"}
    for name in parts - route.query_names:
        answer = asked(http, route, f"?{name}=other")
        assert (answer.status_code, answer.json()["argument"]) == (REFUSED, name), answer.text


def test_a_parameter_that_is_given_twice_is_the_one_that_is_named(http: httpx.Client) -> None:
    answer = http.get("/v1/queues/x/messages?limit=1&type=json&type=text")
    assert (answer.status_code, answer.json()["argument"]) == (REFUSED, "type"), answer.text


@pytest.mark.parametrize("route", ROUTES_WITHOUT_BODY, ids=named)
def test_every_route_without_a_body_refuses_one(http: httpx.Client, route: Route) -> None:
    for body in (b'{"dry_run": true}', b"{}" * 100_000, b"1"):
        answer = asked(http, route, body=body)
        assert (answer.status_code, answer.json()["argument"]) == (REFUSED, "body"), answer.text
    assert b'"body"' not in asked(http, route, body=b"{}").content


STRUCTURED = [each for each in ROUTES.all if each.documented and each.body not in (None, object)]


@pytest.mark.parametrize("route", STRUCTURED, ids=named)
def test_every_body_refuses_fields_that_it_does_not_know(http: httpx.Client, route: Route) -> None:
    answer = asked(http, route, body=b'{"dry_run": true}')
    assert (answer.status_code, answer.json()["argument"]) == (REFUSED, "dry_run"), answer.text


def test_an_endpoint_survives_a_misspelt_request(http: httpx.Client, name: str) -> None:
    place = f"/v1/endpoints/{name}"
    http.put(place, json={"queue": name, "url": "https://shop.example.com/"}).raise_for_status()
    assert http.delete(place, params={"dry_run": "true"}).status_code == REFUSED
    assert http.request("DELETE", place, json={"dry_run": True}).status_code == REFUSED
    assert http.get(place).json()["state"] == "active"


@pytest.mark.parametrize(
    ("method", "path", "sent", "meant"),
    [
        ("GET", "/messages?stat=due", {}, "state"),
        ("POST", "/messages", {"json": {"key": "a", "dely": "1h"}}, "delay"),
        ("POST", "/messages", {"json": [{"key": "a", "dely": "1h"}]}, "delay"),
        ("POST", ":settle", {"json": {"extend": [{"token": "t", "leas": 1}]}}, "lease"),
        ("PUT", "/messages/a", {"headers": {"DueQueue-Dely": "1h"}}, "duequeue-delay"),
    ],
)
def test_the_nearest_name_is_suggested(
    http: httpx.Client, name: str, method: str, path: str, sent: dict[str, Any], meant: str
) -> None:
    answer = http.request(method, f"/v1/queues/{name}{path}", **sent)
    assert answer.status_code == REFUSED
    assert answer.json()["detail"].endswith(f"did you mean '{meant}'?")


@pytest.mark.parametrize("number", ["1e400", "9" * 5000])
def test_a_number_that_is_too_large_is_still_json(
    http: httpx.Client, path: str, number: str
) -> None:
    answer = http.put(f"{path}/messages/a", content=f'{{"amount": {number}}}')
    assert (answer.status_code, answer.json()["argument"]) == (REFUSED, "payload")
    assert "a number that is too large" in answer.json()["detail"]


def test_a_refusal_does_not_repeat_what_is_long(server: Served, path: str) -> None:
    digits = "9" * 5000
    with server.client() as http:
        for sent in ({"key": "a", "delay": digits}, {"key": "a", "delay": 1, digits: 1}):
            answer = http.post(f"{path}/messages", json=sent)
            assert answer.status_code == REFUSED
            assert len(answer.content) < 2000
        answer = http.get(f"{path}/buried", params={"cursor": digits})
        assert len(answer.content) < 2000
        answer = http.post(f"{path}/messages", json={"key": "a\0"})
        assert answer.json()["detail"] == "key: it holds a character that is not allowed here"
