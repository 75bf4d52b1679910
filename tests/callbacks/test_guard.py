"""Where callbacks may go, by address and by URL."""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from duequeue.callbacks.addresses import is_public, unwrapped
from duequeue.callbacks.guard import Guard, Policy, Refused

METADATA = [
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "fe80::1",
    "fd00:ec2::254",
    "fd20:ce::254",
]
WRAPPED = [
    "::ffff:169.254.169.254",
    "::169.254.169.254",
    "64:ff9b::169.254.169.254",
    "2002:a9fe:a9fe::1",
    "2001:0:4136:e378:8000:63bf:5601:5601",
]
PRIVATE = [
    "127.0.0.1",
    "10.1.2.3",
    "172.31.255.255",
    "192.168.0.1",
    "100.64.0.1",
    "0.0.0.0",  # noqa: S104 - an address that must be refused
    "224.0.0.1",
    "255.255.255.255",
    "198.18.0.1",
    "::",
    "::1",
    "fc00::1",
    "ff02::1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "64:ff9b::10.0.0.1",
    "2002:0a00:0001::1",
]
PUBLIC = ["8.8.8.8", "1.1.1.1", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "2002:808:808::"]


@pytest.mark.parametrize("address", METADATA + WRAPPED)
@pytest.mark.parametrize("policy", ["metadata", "public"])
def test_metadata_is_refused_by_default_and_on_the_public_internet(
    policy: Policy, address: str
) -> None:
    with pytest.raises(Refused, match="link-local or metadata"):
        Guard(policy).check_address(ip_address(address))


@pytest.mark.parametrize(
    "address",
    ["64:ff9b:1::8.8.8.8", "64:ff9b:1:a9fe:a9:fe00::", "::ffff:0:169.254.169.254"],
)
@pytest.mark.parametrize("policy", ["metadata", "public"])
def test_what_leads_to_an_unknown_address_is_refused(policy: Policy, address: str) -> None:
    with pytest.raises(Refused, match="may translate to any other"):
        Guard(policy).check_address(ip_address(address))
    Guard(policy, allow=["64:ff9b:1::/48", "::ffff:0:0:0/96"]).check_address(ip_address(address))


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_refused_by_public_alone(address: str) -> None:
    Guard().check_address(ip_address(address))
    Guard("off").check_address(ip_address(address))
    with pytest.raises(Refused, match="not a public address"):
        Guard("public").check_address(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_allowed(address: str) -> None:
    Guard("public").check_address(ip_address(address))


@given(st.ip_addresses(v=4) | st.ip_addresses(v=6) | st.ip_addresses(network="2000::/3"))
def test_what_public_allows_is_global(address: IPv4Address | IPv6Address) -> None:
    if is_public(address):
        assert address.is_global
        assert not address.is_multicast


@given(st.ip_addresses(v=4))
def test_every_wrapping_leads_to_the_same_address(address: IPv4Address) -> None:
    number = int(address)
    assume(number >= 0x10000)
    wrappings = [
        0xFFFF << 32 | number,
        number,
        0x64FF9B << 96 | number,
        0x2002 << 112 | number << 80,
        0x20010000 << 96 | number ^ 0xFFFF_FFFF,
    ]
    assert {unwrapped(IPv6Address(wrapping)) for wrapping in wrappings} == {address}


def test_allowed_networks_are_exceptions_and_denied_ones_stay_denied() -> None:
    guard = Guard("public", allow=["10.0.0.0/8"], deny=["10.9.0.0/16", "8.8.8.8"])
    guard.check_address(ip_address("10.1.1.1"))
    guard.check_address(ip_address("::ffff:10.1.1.1"))
    for denied in ("10.9.1.1", "8.8.8.8", "::ffff:8.8.8.8", "64:ff9b::10.9.1.1"):
        with pytest.raises(Refused, match="denied here"):
            guard.check_address(ip_address(denied))
    with pytest.raises(Refused, match="denied here"):
        Guard("off", deny=["::/0"]).check_address(ip_address("::1"))


@pytest.mark.parametrize("host", ["0.0.0.0", "0", "[::]", "[::ffff:0.0.0.0]"])  # noqa: S104 - nothing listens there
def test_zeros_are_denied_where_this_machine_is(host: str) -> None:
    denying = Guard(deny=["127.0.0.0/8", "::1/128"])
    with pytest.raises(Refused, match="denied here"):
        denying.checked_url(f"http://{host}/")
    with pytest.raises(Refused, match="not a public address"):
        Guard("public").checked_url(f"http://{host}/")
    Guard("public", allow=["127.0.0.0/8", "::1/128"]).checked_url(f"http://{host}/")


def test_the_socket_of_a_refused_address_is_never_made() -> None:
    with pytest.raises(Refused):
        Guard().open_socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.1.1", 80)))
    with pytest.raises(Refused):
        Guard().open_socket(
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fe80::1%eth0", 80, 0, 2))
        )
    made = Guard().open_socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 80)))
    made.close()


@pytest.mark.parametrize(
    "url", ["https://example.com", "http://example.com:8080/a?b=c", "https://[2606:4700::1111]/"]
)
def test_a_url_may_be_an_endpoint(url: str) -> None:
    Guard("public").checked_url(url)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://example.com", "https:// or http://"),
        ("example.com/callbacks", "https:// or http://"),
        ("https:///path", "must name a host"),
        ("https://user:hunter2@example.com", "must not hold a user name or a password"),
        ("https://example.com:99999", "cannot be read"),
        ("https://example.com:port", "cannot be read"),
        ("https://[::1", "cannot be read"),
        ("https://user:hunter2@example.com\N{FULLWIDTH SOLIDUS}a", "cannot be read"),
        ("https://./", "must name a host"),
        ("https://%31%36%39.254.169.254/", "percent-encoded characters in its host"),
        ("https://example.com/\r\nx: y", "control characters"),
        ("https://example.com/a b", "spaces"),
    ],
)
def test_a_url_that_cannot_be_an_endpoint(url: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^url .*{message}") as caught:
        Guard("off").checked_url(url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "017700000001", "[::1]", "[::ffff:7f00:1]"],
)
def test_a_literal_address_is_refused_when_the_endpoint_is_defined(host: str) -> None:
    with pytest.raises(Refused, match="not a public address"):
        Guard("public").checked_url(f"http://{host}/")


@pytest.mark.parametrize(
    "host",
    [
        "169。254。169。254",
        "①⑥⑨.254.169.254",
        "\N{FULLWIDTH DIGIT ONE}69.254.169.254",
        "169.254.169.254.",
        "169.254.169.254。",
        "0xa9fea9fe.",
    ],
)
def test_an_address_in_other_letters_is_refused_like_the_one_that_is_called(host: str) -> None:
    with pytest.raises(Refused, match="link-local or metadata"):
        Guard().checked_url(f"http://{host}/latest")


def test_https_may_be_required() -> None:
    Guard(https_only=True).checked_url("https://example.com")
    with pytest.raises(Refused, match="only https is allowed"):
        Guard(https_only=True).checked_url("http://example.com")


def test_wrong_settings_name_their_argument() -> None:
    with pytest.raises(ValueError, match="policy must be one of metadata, public, off"):
        Guard("private")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="allow must hold networks"):
        Guard(allow=["10.0.0.1/8"])
    with pytest.raises(TypeError, match="deny must be a list"):
        Guard(deny="10.0.0.0/8")
