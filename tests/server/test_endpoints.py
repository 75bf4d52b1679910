"""Endpoints over HTTP: definitions, secrets, states, and who may do what."""

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from duequeue.callbacks.guard import Guard
from duequeue.callbacks.pushing import PushSettings
from duequeue.callbacks.signing import new_secret
from duequeue.server import app_for
from duequeue.server.tokens import Scope, TokenFile, new_token
from tests.server.served import Served, served

URL = "https://shop.example.com/callbacks"


@pytest.fixture
def place(name: str) -> str:
    """The path of an endpoint that no other test has."""
    return f"/v1/endpoints/{name}"


def test_a_new_endpoint_gets_a_secret_that_is_shown_once(
    http: httpx.Client, place: str, name: str
) -> None:
    made = http.put(place, json={"queue": name, "url": URL}).json()
    secret = made.pop("secret")
    assert secret.startswith("whsec_")
    assert made == {
        "id": name,
        "queue": name,
        "type": "json",
        "url": URL,
        "timeout": 30.0,
        "concurrency": 10,
        "rate": None,
        "attempts": 10,
        "backoff": {"first": 10.0, "longest": 86400.0, "factor": 5.0},
        "respond": False,
        "keep": 3600.0,
        "default": True,
        "state": "active",
        "reason": "",
        "secrets": [{"fingerprint": made["secrets"][0]["fingerprint"]}],
    }
    assert http.get(place).json() == made
    assert secret not in http.get(f"/v1/endpoints?queue={name}").text
    changed = http.put(place, json={"queue": name, "url": URL, "timeout": "5s"}).json()
    assert changed["timeout"] == 5.0
    assert "secret" not in changed
    assert changed["secrets"] == made["secrets"]


def test_a_secret_of_ones_own_is_never_shown(http: httpx.Client, place: str, name: str) -> None:
    secret = new_secret()
    given = {
        "queue": name,
        "url": URL,
        "secret": secret,
        "timeout": 15,
        "concurrency": 3,
        "rate": "120/m",
        "attempts": 4,
        "backoff": {"first": "1s", "longest": "1m", "factor": 2},
        "respond": True,
        "keep": "2h",
    }
    answer = http.put(place, json=given)
    assert secret not in answer.text
    made = answer.json()
    assert (made["rate"], made["attempts"], made["keep"]) == (2.0, 4, 7200.0)
    assert made["backoff"] == {"first": 1.0, "longest": 60.0, "factor": 2.0}


def test_a_secret_key_shows_its_public_half(http: httpx.Client, place: str, name: str) -> None:
    secret = new_secret("v1a")
    made = http.put(place, json={"queue": name, "url": URL, "secret": secret}).json()
    assert made["secrets"][0]["public_key"].startswith("whpk_")
    rotated = http.post(f"{place}:rotate-secret", json={"overlap": "1h"}).json()
    assert rotated["secret"].startswith("whsk_")
    new, old = rotated["secrets"]
    assert old["public_key"] == made["secrets"][0]["public_key"] != new["public_key"]
    assert datetime.fromisoformat(old["until"]) > datetime.now(UTC)


def test_a_rotation_without_overlap_ends_the_old_secret_at_once(
    http: httpx.Client, place: str, name: str
) -> None:
    before = http.put(place, json={"queue": name, "url": URL}).json()
    rotated = http.post(f"{place}:rotate-secret", json={"overlap": 0}).json()
    (left,) = rotated["secrets"]
    assert left != before["secrets"][0]
    mine = new_secret()
    again = http.post(f"{place}:rotate-secret", json={"secret": mine, "overlap": 60})
    assert mine not in again.text
    assert "secret" not in again.json()
    assert len(again.json()["secrets"]) == 2
    same = http.post(f"{place}:rotate-secret", json={"secret": mine})
    assert (same.status_code, same.json()["argument"]) == (422, "secret")


def test_disable_and_enable(http: httpx.Client, place: str, name: str) -> None:
    http.put(place, json={"queue": name, "url": URL})
    assert http.post(f"{place}:disable", json={"reason": "moving"}).json() == {"changed": True}
    assert http.post(f"{place}:disable").json() == {"changed": False}
    shown = http.get(place).json()
    assert (shown["state"], shown["reason"]) == ("disabled", "moving")
    assert datetime.fromisoformat(shown["since"]) <= datetime.now(UTC)
    http.put(place, json={"queue": name, "url": f"{URL}/new"})
    assert http.get(place).json()["state"] == "disabled"
    assert http.post(f"{place}:enable").json() == {"changed": True}
    assert http.post(f"{place}:enable").json() == {"changed": False}
    assert http.get(place).json()["state"] == "active"


def test_removal(http: httpx.Client, place: str, name: str) -> None:
    http.put(place, json={"queue": name, "url": URL})
    http.post(f"{place}:disable")
    assert http.delete(place).json() == {"changed": True}
    for method, verb in (("GET", ""), ("DELETE", ""), ("POST", ":enable"), ("POST", ":disable")):
        assert http.request(method, f"{place}{verb}").status_code == 404
    assert http.post(f"{place}:rotate-secret").status_code == 404
    made = http.put(place, json={"queue": name, "url": URL}).json()
    assert made["state"] == "active"
    assert "secret" in made


def test_a_queue_has_one_default_endpoint(http: httpx.Client, place: str, name: str) -> None:
    given = {"queue": name, "url": URL}
    assert http.put(place, json=given).json()["default"]
    assert not http.put(f"{place}2", json=given).json()["default"]
    taken = http.put(f"{place}2", json={**given, "default": True})
    assert (taken.status_code, taken.json()["argument"]) == (409, "default")
    assert not http.put(place, json={**given, "default": False}).json()["default"]
    assert http.put(f"{place}2", json={**given, "default": True}).json()["default"]
    assert not http.put(place, json=given).json()["default"]
    shown = http.get("/v1/endpoints", params={"queue": name}).json()["endpoints"]
    assert [each["default"] for each in shown] == [False, True]


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"url": "ftp://example.com"}, "url"),
        ({"url": "https://"}, "url"),
        ({"url": "https://user:password@example.com"}, "url"),
        ({"url": "https://example.com/#top"}, "url"),
        ({"secret": "guess me"}, "secret"),
        ({"secret": "whsec_c2hvcnQ="}, "secret"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": "2d"}, "timeout"),
        ({"concurrency": 0}, "concurrency"),
        ({"rate": 0}, "rate"),
        ({"rate": "fast"}, "rate"),
        ({"attempts": 0}, "attempts"),
        ({"backoff": {"first": 0}}, "first"),
        ({"backoff": {"factor": 0.5}}, "backoff.factor"),
        ({"keep": 0}, "keep"),
        ({"queue": ""}, "queue"),
        ({"queue": "duequeue-endpoints"}, "queue"),
        ({"queue": "duequeue-crons"}, "queue"),
        ({"misspelt": 1}, "misspelt"),
    ],
    ids=str,
)
def test_bad_definitions_name_the_argument(
    http: httpx.Client, place: str, name: str, given: dict[str, Any], argument: str
) -> None:
    answer = http.put(place, json={"queue": name, "url": URL, **given})
    assert (answer.status_code, answer.json()["argument"]) == (422, argument)
    assert "password" not in answer.text or argument == "url"
    assert "guess me" not in answer.text
    assert http.get(place).status_code == 404


@pytest.mark.parametrize("identity", ["a b", "%C3%BC", "-a", "a" * 100])
def test_bad_ids_are_refused(http: httpx.Client, name: str, identity: str) -> None:
    answer = http.put(f"/v1/endpoints/{identity}", json={"queue": name, "url": URL})
    assert (answer.status_code, answer.json()["argument"]) == (422, "id")


def test_nobody_reads_the_stored_secrets(server: Served, http: httpx.Client) -> None:
    for path in ("messages", "buried", ":poll"):
        separator = "" if path.startswith(":") else "/"
        method = "POST" if path.startswith(":") else "GET"
        answer = http.request(method, f"/v1/queues/duequeue-endpoints{separator}{path}")
        assert answer.status_code == 403
    assert "duequeue-endpoints" not in http.get("/v1/queues").text


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[Served, TokenFile]]:
    tokens = TokenFile(tmp_path / "tokens.json")
    with served(app_for("memory:guarded-endpoints", token_file=tokens.path)) as server:
        yield server, tokens


def test_scopes_and_prefixes(guarded: tuple[Served, TokenFile]) -> None:
    server, tokens = guarded
    given = {}
    for prefix in ("", "shop"):
        for scope in Scope:
            given[scope, prefix], grant = new_token([scope], datetime.now(UTC), prefix=prefix)
            tokens.add(grant)
    with server.client(given[Scope.ADMIN, ""]) as http:
        assert http.put("/v1/endpoints/e", json={"queue": "orders", "url": URL}).status_code == 200
    for (scope, prefix), token in given.items():
        with server.client(token) as http:
            may_read = scope in {Scope.READ, Scope.ADMIN} and not prefix
            may_write = scope is Scope.ADMIN and not prefix
            shown = http.get("/v1/endpoints").json()["endpoints"]
            assert bool(shown) == may_read
            assert (http.get("/v1/endpoints/e").status_code == 200) == may_read
            refusal = 404 if prefix else 403
            for verb in (":enable", ":disable", ":rotate-secret"):
                answer = http.post(f"/v1/endpoints/e{verb}")
                assert answer.status_code == (200 if may_write else refusal)
            if not may_write:
                assert http.delete("/v1/endpoints/e").status_code == refusal
                body = {"queue": "orders", "url": URL}
                assert http.put("/v1/endpoints/e", json=body).status_code == 403


class Teams(NamedTuple):
    """Clients whose tokens may do everything, two of them only on their own queues."""

    everybody: httpx.Client
    shop: httpx.Client
    mail: httpx.Client


@pytest.fixture
def teams(guarded: tuple[Served, TokenFile]) -> Iterator[Teams]:
    server, tokens = guarded
    with ExitStack() as stack:
        clients = []
        for prefix in ("", "shop-", "mail-"):
            token, grant = new_token([Scope.ADMIN], datetime.now(UTC), prefix=prefix)
            tokens.add(grant)
            clients.append(stack.enter_context(server.client(token)))
        yield Teams(*clients)


def test_each_prefix_has_its_own_names(teams: Teams) -> None:
    for http, queue in ((teams.shop, "shop-a"), (teams.mail, "mail-a"), (teams.everybody, "all")):
        assert http.get("/v1/endpoints/e").status_code == 404
        made = http.put("/v1/endpoints/e", json={"queue": queue, "url": URL})
        assert (made.status_code, made.json()["id"]) == (200, "e")
        assert http.get("/v1/endpoints/e").json()["queue"] == queue
    assert [each["id"] for each in teams.shop.get("/v1/endpoints").json()["endpoints"]] == ["e"]
    every = [each["id"] for each in teams.everybody.get("/v1/endpoints").json()["endpoints"]]
    assert sorted(every) == ["e", "mail-/e", "shop-/e"]
    assert teams.everybody.get("/v1/endpoints/shop-%2Fe").json()["queue"] == "shop-a"
    assert teams.shop.delete("/v1/endpoints/e").json() == {"changed": True}
    assert teams.mail.get("/v1/endpoints/e").status_code == 200
    assert teams.everybody.delete("/v1/endpoints/mail-%2Fe").json() == {"changed": True}
    assert teams.mail.get("/v1/endpoints/e").status_code == 404
    assert teams.everybody.get("/v1/endpoints/e").status_code == 200


@pytest.mark.parametrize("identity", ["mail-%2Fe", "%2Fe", "shop%2Fe", "other%2Fe"])
def test_a_prefix_cannot_find_out_or_take_the_names_of_others(teams: Teams, identity: str) -> None:
    def answers() -> list[int]:
        path = f"/v1/endpoints/{identity}"
        body = {"queue": "shop-a", "url": URL}
        found = [teams.shop.get(path), teams.shop.delete(path), teams.shop.put(path, json=body)]
        return [each.status_code for each in found]

    before = answers()
    assert before == [404, 404, 403]
    teams.mail.put("/v1/endpoints/e", json={"queue": "mail-a", "url": URL})
    teams.everybody.put("/v1/endpoints/e", json={"queue": "all", "url": URL})
    assert answers() == before


def test_an_endpoint_without_a_prefix_may_belong_to_a_queue_of_a_prefix(teams: Teams) -> None:
    body = {"queue": "shop-a", "url": URL}
    assert teams.everybody.put("/v1/endpoints/e", json=body).status_code == 200
    assert teams.shop.get("/v1/endpoints/e").json()["id"] == "/e"
    assert teams.mail.get("/v1/endpoints/e").status_code == 404
    changed = teams.shop.put("/v1/endpoints/e", json={**body, "timeout": "7s"})
    assert changed.json()["id"] == "/e"
    assert teams.everybody.get("/v1/endpoints/e").json()["timeout"] == 7
    assert teams.shop.get("/v1/endpoints/%2Fe").json()["timeout"] == 7


def test_an_endpoint_of_a_prefix_has_a_queue_of_it(teams: Teams) -> None:
    answer = teams.everybody.put("/v1/endpoints/shop-%2Fe", json={"queue": "all", "url": URL})
    assert (answer.status_code, answer.json()["argument"]) == (422, "queue")
    body = {"queue": "shop-a", "url": URL}
    assert teams.everybody.put("/v1/endpoints/shop-%2Fe", json=body).status_code == 200
    assert teams.shop.get("/v1/endpoints/e").json()["id"] == "e"


def test_crons_of_one_name_do_not_meet(teams: Teams) -> None:
    for http, queue in ((teams.shop, "shop-a"), (teams.mail, "mail-a")):
        assert http.get("/v1/crons/c").status_code == 404
        body = {"queue": queue, "every": "1h"}
        assert http.put("/v1/crons/c", json=body).status_code == 200
        assert http.get("/v1/crons/c").json()["queue"] == queue
    for queue in ("mail-a", "mail-b"):  # one that exists, and one that does not
        answer = teams.shop.get(f"/v1/crons/c?queue={queue}")
        assert answer.status_code == 403
    assert teams.shop.delete("/v1/crons/c").json() == {"changed": True}
    assert teams.mail.get("/v1/crons/c").status_code == 200


def test_with_tokens_callbacks_go_only_to_public_addresses(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    token, grant = new_token([Scope.ADMIN], datetime.now(UTC))
    tokens.add(grant)
    body = {"queue": "orders", "url": "http://127.0.0.1:9/"}
    for place, (options, policy, status) in enumerate(
        (
            ({"token_file": tokens.path}, None, 422),
            ({"token_file": tokens.path}, Guard("public", ["127.0.0.0/8"]), 200),
            ({"token_file": tokens.path}, Guard("metadata"), 200),
            ({"trusted": True}, None, 200),
        )
    ):
        push = PushSettings(policy)
        service = app_for(f"memory:public-{place}", push=push, **options)  # type: ignore[arg-type]
        with served(service) as server, server.client(token) as http:
            assert http.put("/v1/endpoints/e", json=body).status_code == status


def test_a_server_refuses_an_endpoint_that_it_would_never_call() -> None:
    push = PushSettings(guard=Guard("public", https_only=True))
    with (
        served(app_for("memory:guarded", trusted=True, push=push)) as server,
        server.client() as client,
    ):
        for url, reason in (
            ("https://10.1.2.3/", "callbacks to 10.1.2.3 are refused: it is not a public address"),
            ("http://shop.example.com/", "url must begin with https://, because only https"),
        ):
            answer = client.put("/v1/endpoints/shop", json={"queue": "orders", "url": url})
            assert answer.status_code == 422
            assert answer.json()["argument"] == "url"
            assert answer.json()["detail"].startswith(reason)
        assert client.get("/v1/endpoints").json() == {"endpoints": []}
        answer = client.put("/v1/endpoints/shop", json={"queue": "orders", "url": URL})
        assert answer.status_code == 200
