"""Test the one parser of servers' addresses."""

from __future__ import annotations

from ipaddress import IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.common.addresses import (
    format_address,
    parse_address,
    parse_addresses,
    strip_brackets,
)


def test_servers_are_read_as_librdkafka_and_kafka_write_them() -> None:
    servers = "kafka-1:9092, [::1]:9093,127.0.0.1:9094 ,[fe80::1%eth0]:1,my_host.example.:65535"
    assert parse_addresses(servers) == [
        ("kafka-1", 9092),
        ("::1", 9093),
        ("127.0.0.1", 9094),
        ("fe80::1%eth0", 1),
        ("my_host.example.", 65535),
    ]


@given(
    st.ip_addresses().map(str) | st.from_regex(r"[a-z0-9._-]+", fullmatch=True),
    st.integers(1, 65_535),
)
def test_an_address_is_read_as_it_was_formatted(host: str, port: int) -> None:
    assert parse_address(format_address((host, port))) == (host, port)


@given(st.ip_addresses(v=6), st.integers(1, 65_535))
def test_an_ipv6_address_without_brackets_is_refused(host: IPv6Address, port: int) -> None:
    for text in (str(host), f"{host}:{port}", f"{host.exploded}:{port}"):
        with pytest.raises(ValueError, match="has an IPv6 address without brackets: write it as"):
            parse_address(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("::1:9092", r"write it as \[::1\]:9092"),
        ("::1", r"write it as \[::1\]:9092"),
        ("2001:db8::8:800:200c:417a:9092", r"write it as \[2001:db8::8:800:200c:417a\]:9092"),
        ("localhost", "'localhost' is not host:port, with a port from 1 to 65535"),
        ("", "'' is not host:port"),
        (":9092", "':9092' is not host:port"),
        ("[]:9092", r"'\[\]:9092' is not host:port"),
        ("[::1]", r"'\[::1\]' is not host:port"),
        ("a:", "'a:' is not host:port"),
        ("a:0", "'a:0' is not host:port"),
        ("a:65536", "'a:65536' is not host:port"),
        ("a:-1", "'a:-1' is not host:port"),
        ("a:\u0669\u0660", "is not host:port"),
        ("a:9\u00b2", "is not host:port"),
        ("a:1_000", "'a:1_000' is not host:port"),
        ("a b:1", "'a b:1' is not host:port"),
        ("a:b:1", "IPv6 addresses are written as"),
        ("[a]:1", "IPv6 addresses are written as"),
        ("[::1:1", "is not host:port"),
        ("[::g]:1", "'::g' is no IPv6 address"),
        ("PLAINTEXT://a:1", "begins with a protocol: write host:port alone"),
        ("http://[::1]:1", "begins with a protocol: write host:port alone"),
    ],
)
def test_what_is_no_address_is_refused_with_how_to_write_it(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_address(text)
    with pytest.raises(ValueError, match=message):
        parse_addresses(f"a:1,{text}")


def test_a_host_alone_may_have_brackets() -> None:
    assert [strip_brackets(each) for each in ("[::1]", "::1", "a", "[")] == ["::1", "::1", "a", "["]
