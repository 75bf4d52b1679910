"""What the URLs of Redis and Valkey mean, and what is refused."""

import pytest

from duequeue.stores.redis_client.settings import (
    Credentials,
    Durable,
    RedisSettings,
    Server,
    Way,
    slot_of,
)

SECRET = "s3cret"


@pytest.mark.parametrize("family", ["redis", "valkey"])
def test_a_server_by_its_host_port_and_database(family: str) -> None:
    settings = RedisSettings.from_url(f"{family}://app:{SECRET}@queues.example:7000/3")
    assert settings.way is Way.SERVER
    assert settings.servers == (Server("queues.example", 7000),)
    assert settings.database == 3
    assert settings.credentials == Credentials("app", SECRET)
    assert settings.tls is None
    assert settings.address == "queues.example:7000/3"


@pytest.mark.parametrize("url", ["redis://", "redis://localhost", "valkey://:6379/0", "REDIS://"])
def test_what_is_left_out_is_the_usual(url: str) -> None:
    settings = RedisSettings.from_url(url)
    assert settings.place == RedisSettings.from_url("redis://localhost:6379/0").place


def test_special_characters_of_a_password_are_percent_encoded() -> None:
    settings = RedisSettings.from_url("redis://:p%40ss%2Fw%3Ard@localhost")
    assert settings.credentials == Credentials(None, "p@ss/w:rd")


def test_a_user_without_a_password_is_a_user() -> None:
    assert RedisSettings.from_url("redis://app@localhost").credentials == Credentials("app")


def test_an_ipv6_address_is_in_brackets() -> None:
    settings = RedisSettings.from_url("redis+cluster://[::1]:7000,[::2]")
    assert settings.servers == (Server("::1", 7000), Server("::2", 6379))
    assert settings.address == "[::1]:7000,[::2]:6379"


@pytest.mark.parametrize("scheme", ["rediss", "valkeys", "rediss+sentinel", "valkeys+cluster"])
def test_tls_takes_the_options_of_the_driver(scheme: str) -> None:
    path = "/queues" if scheme.endswith("sentinel") else ""
    options = "ssl_ca_certs=/etc/my%20ca.pem&ssl_check_hostname=false&ssl_cert_reqs=required"
    settings = RedisSettings.from_url(f"{scheme}://localhost{path}?{options}")
    assert dict(settings.tls or ()) == {
        "ssl_ca_certs": "/etc/my ca.pem",
        "ssl_check_hostname": False,
        "ssl_cert_reqs": "required",
    }


def test_a_socket_is_a_path_and_its_database_an_option() -> None:
    settings = RedisSettings.from_url(f"unix://:{SECRET}@/run/my%20redis.sock?db=2")
    assert (settings.way, settings.path, settings.database) == (Way.SOCKET, "/run/my redis.sock", 2)
    assert settings.credentials == Credentials(None, SECRET)
    assert settings.address == "/run/my redis.sock?db=2"


def test_sentinels_watch_a_service() -> None:
    url = f"redis+sentinel://:{SECRET}@a,b:7000/queues/1?sentinel_password={SECRET}2"
    settings = RedisSettings.from_url(url)
    assert settings.way is Way.SENTINEL
    assert settings.servers == (Server("a", 26379), Server("b", 7000))
    assert (settings.service, settings.database) == ("queues", 1)
    assert settings.sentinel_credentials == Credentials(None, f"{SECRET}2")
    assert settings.address == "a:26379,b:7000/queues/1"


def test_the_options_of_ours() -> None:
    options = "pool_size=3&durable=fsync&shards=16&eviction=allow&persistence=none"
    settings = RedisSettings.from_url(f"redis+cluster://localhost?{options}")
    assert (settings.pool_size, settings.durable, settings.shards) == (3, Durable.FSYNC, 16)
    assert settings.may_evict
    assert settings.may_forget


def test_without_options_nothing_is_waited_for() -> None:
    settings = RedisSettings.from_url("redis://localhost")
    assert (settings.durable, settings.shards) == (Durable.NOTHING, 1)
    assert not settings.may_evict
    assert not settings.may_forget


@pytest.mark.parametrize("user", ["", ":other", "default:other"])
def test_the_same_keys_are_the_same_place(user: str) -> None:
    one = RedisSettings.from_url(f"redis://:{SECRET}@localhost/1?durable=fsync&pool_size=3")
    assert one.place == RedisSettings.from_url(f"valkey://{user}@localhost:6379/1").place
    others = ["redis://localhost/2", "redis://localhost/1?shards=4", "redis+cluster://localhost"]
    others.append(f"redis://app:{SECRET}@localhost/1")
    assert all(one.place != RedisSettings.from_url(url).place for url in others)


@pytest.mark.parametrize(
    "url",
    [
        f"redis://app:{SECRET}@localhost/1",
        f"unix://:{SECRET}@/run/redis.sock",
        f"redis+sentinel://:{SECRET}@localhost/queues?sentinel_password={SECRET}",
        f"rediss://:{SECRET}@localhost?ssl_password={SECRET}",
    ],
)
def test_no_password_is_ever_shown(url: str) -> None:
    settings = RedisSettings.from_url(url)
    assert SECRET not in f"{settings!r} {settings} {settings.address} {settings.place}"
    assert SECRET not in settings.clean(f"the server said {SECRET}")


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("redis://localhost/x", "database in the url must be a whole number, not 'x'"),
        ("redis://localhost/1?db=2", "names the database twice"),
        ("redis+cluster://localhost/1", "a cluster has only database 0"),
        ("redis+sentinel://localhost", "must name the service"),
        ("redis+sentinel://localhost/queues/x", "database in the url"),
        ("unix://", "must name the socket"),
        ("redis://one,two/0", "names several servers: begin it with redis\\+cluster://"),
        ("redis://localhost:99999", "port that is not a whole number"),
        ("redis://localhost?pool_size=0", "pool_size in the url must be a whole number from 1"),
        ("redis://localhost?shards=0", "shards in the url must be a whole number from 1"),
        ("redis://localhost?shards=many", "shards in the url"),
        ("redis://localhost?durable=yes", "durable in the url must be fsync or replica"),
        ("redis://localhost?eviction=yes", "eviction in the url must be allow"),
        ("redis://localhost?durabel=fsync", "unknown option 'durabel'; did you mean 'durable'"),
        ("redis://localhost?ssl_ca_certs=/x", "ssl_ca_certs in the url needs TLS"),
        ("rediss://localhost?ssl_cert_reqs=maybe", "ssl_cert_reqs in the url must be none or"),
        ("redis://localhost?sentinel_password=x", "begins with redis\\+sentinel"),
    ],
)
def test_a_mistake_is_named(url: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        RedisSettings.from_url(url)


@pytest.mark.parametrize(
    "url",
    [
        f"redis://app:{SECRET}/x@localhost",
        f"redis://app:{SECRET}?x@localhost",
        f"redis://:{SECRET}",
        f"redis://app:{SECRET}@x@localhost",
    ],
)
def test_a_mistake_in_a_password_does_not_show_it(url: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - what matters is what it does not say
        RedisSettings.from_url(url)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "slot"),
    # As `CLUSTER KEYSLOT` answers.
    [("123456789", 12739), ("dq:{orders}:w", 105), ("{}x", 10_595), ("{", 4092), ("a{b}{c}", 3300)],
)
def test_the_slot_of_a_key_is_that_of_its_tag(key: str, slot: int) -> None:
    assert slot_of(key) == slot
