"""Parse and format the addresses of servers: `host:port`, with IPv6 literals in brackets.

The settings, the membership, the commands, Spark and the embedded broker's process all use this
parser. librdkafka and Kafka's own clients write and read addresses in the same way.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address, ip_address
from typing import TypeAlias

Address: TypeAlias = tuple[str, int]
"""A host, IPv6 literals without brackets, and a port."""

_PORT_MAX = 65_535
_PORT_DIGITS_MAX = 5
_LOCAL_NAMES = frozenset(("localhost", "localhost.localdomain"))


@lru_cache(maxsize=1_024)  # of other workers, for each query
def parse_address(text: str) -> Address:
    """Return the host, without brackets, and the port of an address.

    Raises ValueError, which says what is wrong and how to write it.
    """
    address = text.strip()
    if "://" in address:
        raise ValueError(
            f"{address!r} begins with a protocol: write host:port alone, and name the protocol in "
            "the setting 'connection' (security.protocol)"
        )
    host, _, digits = address.rpartition(":")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= _PORT_DIGITS_MAX
    is_bracketed = host.startswith("[") and host.endswith("]")
    literal = strip_brackets(host)
    if not is_bracketed and (_is_ipv6(address) or _is_ipv6(literal)):
        # Its last group would be taken for a port, as that of ::1:9092 may be meant.
        hint = f"[{literal}]:{digits}" if is_number and _is_ipv6(literal) else f"[{address}]:9092"
        raise ValueError(f"{address!r} has an IPv6 address without brackets: write it as {hint}")
    if not literal or not is_number or not 0 < int(digits) <= _PORT_MAX:
        raise ValueError(f"{address!r} is not host:port, with a port from 1 to {_PORT_MAX}")
    if is_bracketed != (":" in literal) or any(each in literal for each in "[]/@, \t"):
        raise ValueError(f"{address!r} is not host:port; IPv6 addresses are written as [::1]:9092")
    if is_bracketed and not _is_ipv6(literal):
        raise ValueError(f"{address!r}: {literal!r} is no IPv6 address, such as [::1]:9092 has")
    return literal, int(digits)


def parse_addresses(text: str) -> list[Address]:
    """Return the addresses in a list of them, as `bootstrap_servers` is: host:port,...

    Raises ValueError for one that is none.
    """
    return [parse_address(each) for each in text.split(",")]


def format_address(address: Address) -> str:
    """Return an address as `host:port`, with an IPv6 literal in brackets."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def strip_brackets(host: str) -> str:
    """Return a host that stands alone, as in `health_host`, without the brackets of IPv6."""
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def is_loopback(host: str) -> bool:
    """Return whether a host names this machine, and no address that others reach."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() in _LOCAL_NAMES


def _is_ipv6(text: str) -> bool:
    """Return whether a text is an IPv6 address, with a zone or without."""
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True
