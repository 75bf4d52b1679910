"""What the URLs of MariaDB and MySQL mean, and what is refused."""

import ssl
from pathlib import Path

import pytest

from duequeue.backends import backend_for
from duequeue.contract.faces import Face
from duequeue.stores.sql.mariadb.settings import Host, MariadbSettings

SECRET = "s3cret"


def test_a_database_by_its_host_and_port() -> None:
    settings = MariadbSettings.from_url(f"mariadb://app:{SECRET}@queues.example:3307/shop")
    assert settings.address.hosts == (Host("queues.example", 3307),)
    assert (settings.user, settings.password) == ("app", SECRET)
    assert str(settings.address) == "queues.example:3307/shop"
    assert settings.place == "mariadb://app@queues.example:3307/shop"


@pytest.mark.parametrize("url", ["mariadb:///shop", "mysql://localhost/shop", "mysql://:3306/shop"])
def test_what_is_left_out_is_the_usual(url: str) -> None:
    settings = MariadbSettings.from_url(url)
    assert settings == MariadbSettings.from_url("mariadb://localhost:3306/shop")
    assert (settings.pool_size, settings.connect_seconds) == (10, 5)
    assert (settings.ssl_mode, settings.must_encrypt) == ("preferred", False)
    assert settings.arguments["user"] is None  # the drivers take the one of the system


@pytest.mark.parametrize(
    "scheme",
    ["mysql", "mariadb+pymysql", "mysql+pymysql", "mariadb+asyncmy", "mysql+mysqldb", "MYSQL"],
)
def test_the_scheme_may_be_that_of_the_other_server_and_name_a_driver(scheme: str) -> None:
    backend = backend_for(f"{scheme}://app:{SECRET}@localhost/shop")
    assert backend.place == "mariadb://app@localhost:3306/shop"


def test_special_characters_are_percent_encoded() -> None:
    settings = MariadbSettings.from_url("mariadb://a%40b:p%40ss%2Fw%3Ard%C3%A9@localhost/my%20shop")
    assert (settings.user, settings.password) == ("a@b", "p@ss/w:rdé")
    assert settings.arguments["password"] == "p@ss/w:rdé".encode()
    assert settings.arguments["database"] == "my shop"


def test_several_hosts_are_kept_in_their_order() -> None:
    settings = MariadbSettings.from_url("mariadb://app@one,two:3307,[::1]:3308,[::2]/shop")
    assert settings.address.hosts == (
        Host("one", 3306),
        Host("two", 3307),
        Host("::1", 3308),
        Host("::2", 3306),
    )
    assert str(settings.address) == "one:3306,two:3307,[::1]:3308,[::2]:3306/shop"


def test_a_socket_replaces_the_hosts_and_is_not_encrypted() -> None:
    url = "mariadb://app@/shop?unix_socket=/run/my%20sql.sock&ssl_mode=required"
    settings = MariadbSettings.from_url(url)
    assert settings.arguments["unix_socket"] == "/run/my sql.sock"
    assert str(settings.address) == "/run/my sql.sock/shop"
    assert settings.ssl_context is None


def test_the_options_of_ours() -> None:
    url = "mariadb://localhost/shop?pool_size=3&connect_timeout=2&charset=utf8mb4"
    settings = MariadbSettings.from_url(f"{url}&alerts=redis%3A%2F%2Flocalhost%2F1")
    assert (settings.pool_size, settings.connect_seconds) == (3, 2)
    assert settings.alerts == "redis://localhost/1"


@pytest.mark.parametrize(
    ("mode", "must_encrypt", "verifies", "checks_host"),
    [
        ("preferred", False, ssl.CERT_NONE, False),
        ("required", True, ssl.CERT_NONE, False),
        ("REQUIRED", True, ssl.CERT_NONE, False),
        ("verify_ca", True, ssl.CERT_REQUIRED, False),
        ("verify-identity", True, ssl.CERT_REQUIRED, True),
    ],
)
def test_how_much_tls_verifies(
    mode: str, *, must_encrypt: bool, verifies: ssl.VerifyMode, checks_host: bool
) -> None:
    settings = MariadbSettings.from_url(f"mariadb://localhost/shop?ssl_mode={mode}")
    assert settings.must_encrypt is must_encrypt
    assert settings.ssl_context is not None
    assert settings.ssl_context.verify_mode is verifies
    assert settings.ssl_context.check_hostname is checks_host


def test_tls_can_be_turned_off() -> None:
    settings = MariadbSettings.from_url("mariadb://localhost/shop?ssl_mode=disabled")
    assert settings.ssl_context is None
    assert not settings.must_encrypt


def test_who_names_an_authority_wants_it_to_be_verified() -> None:
    settings = MariadbSettings.from_url("mariadb://localhost/shop?ssl_ca=/etc/my%20ca.pem")
    assert (settings.ssl_mode, settings.ssl_ca) == ("verify_ca", "/etc/my ca.pem")
    assert settings.must_encrypt


@pytest.mark.parametrize(
    "url",
    [
        f"mariadb://app:{SECRET}@localhost/shop",
        f"mariadb://app:{SECRET}@/shop?unix_socket=/run/mysqld.sock",
        f"mariadb://localhost/shop?alerts=redis%3A%2F%2F%3A{SECRET}%40localhost",
    ],
)
def test_no_password_is_ever_shown(url: str) -> None:
    settings = MariadbSettings.from_url(url)
    backend = backend_for(url)
    shown = f"{settings!r} {settings} {settings.address} {settings.place}"
    assert SECRET not in f"{shown} {backend!r} {backend.address} {backend.place}"


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("mariadb://localhost", "url must name one database"),
        ("mariadb://localhost/", "url must name one database"),
        ("mariadb://localhost/shop/orders", "url must name one database"),
        ("mariadb://localhost:99999/shop", "a port from 1 to 65535"),
        ("mariadb://localhost:0/shop", "a port from 1 to 65535"),
        ("mariadb://localhost:port/shop", "url has a host that is not host or host:port"),
        ("mariadb://::1/shop", "url has a host"),
        ("mariadb://one,,two/shop", "url has a host"),
        ("mariadb://localhost/shop?pool_size=0", "pool_size in the url must be a whole number"),
        ("mariadb://localhost/shop?pool_size=many", "pool_size in the url .* not 'many'"),
        ("mariadb://localhost/shop?connect_timeout=0.5", "connect_timeout in the url"),
        ("mariadb://localhost/shop?ssl_mode=maybe", "ssl_mode in the url must be one of disabled"),
        ("mariadb://localhost/shop?ssl_key=/x", "ssl_key in the url needs ssl_cert"),
        ("mariadb://localhost/shop?charset=latin1", "charset in the url must be utf8mb4"),
        ("mariadb://localhost/shop?pool_siz=3", "unknown option 'pool_siz'; did you mean 'pool_s"),
    ],
)
def test_a_mistake_is_named(url: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        MariadbSettings.from_url(url)


@pytest.mark.parametrize(
    "url",
    [
        f"mariadb://app:{SECRET}/x@localhost/shop",
        f"mariadb://app:{SECRET}?x@localhost/shop",
        f"mariadb://app:1?{SECRET}@localhost/shop",
        f"mariadb://app:1/?pool_size={SECRET}@localhost/shop",
        f"mariadb://:{SECRET}/shop",
        f"mariadb://app:{SECRET}",
        f"mariadb://app:{SECRET}@x@localhost/shop",
    ],
)
def test_a_mistake_in_a_password_does_not_show_it(url: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - what matters is what it does not say
        MariadbSettings.from_url(url)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("option", ["ssl_ca", "ssl_cert"])
def test_a_file_that_cannot_be_used_is_refused_as_soon_as_a_queue_is_opened(
    face: Face, tmp_path: Path, option: str
) -> None:
    broken = tmp_path / "broken.pem"
    broken.write_text("nothing")
    for path in (tmp_path / "missing.pem", broken):
        url = f"mariadb://localhost:1/shop?ssl_mode=verify_ca&{option}={path}"
        with pytest.raises(ValueError, match=f"{option}.* in the url names a file"):
            face.open(url, "orders")


def test_a_driver_that_we_do_not_know_is_named() -> None:
    with pytest.raises(ValueError, match="pg8000"):
        backend_for("mysql+pg8000://localhost/shop")
