"""Read the certificates of a connection, and look which rights its user lacks."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from streams.common.addresses import Address, format_address, parse_addresses
from streams.connection.certificate_validity import read_certificate_validity
from streams.connection.security import ConnectionSecurity
from streams.connection.settings import ConnectionSettings
from streams.doctor.security import Certificate, parse_peer_validity
from streams.errors import AuthorizationError
from streams.runtime.access.acls import Acl, AclOperation, AclResource, PatternType
from streams.runtime.clients import Admin

ResourceName: TypeAlias = str
MissingOperation: TypeAlias = str
TopicCount: TypeAlias = int

_OWN = (("ssl.certificate", "the client certificate"), ("ssl.ca", "the first authority"))


def read_own_certificates(settings: ConnectionSettings) -> Iterator[Certificate]:
    """Yield the certificates that the settings name, as far as they can be read."""
    for name, owner in _OWN:
        pem, path = settings.get(f"{name}.pem"), settings.get(f"{name}.location")
        data = b""
        with suppress(OSError):  # a worker is refused at its start then, and told so
            data = str(pem).encode() if pem else Path(str(path)).read_bytes() if path else b""
        if data and (validity := read_certificate_validity(data)) is not None:
            yield Certificate(f"{owner} ({name})", validity)


def fetch_broker_certificates(
    addresses: Sequence[Address], security: ConnectionSecurity, timeout_s: float
) -> Iterator[Certificate]:
    """Yield the certificates that brokers show; without verification Python does not read them."""
    if security.tls is None:
        return
    for address in addresses:
        with (
            suppress(OSError),  # told by the point on brokers
            socket.create_connection(address, timeout_s) as plain,
            security.tls.wrap_socket(plain, server_hostname=address[0]) as secured,
        ):
            shown = secured.getpeercert()
            if shown:
                where = format_address(address)
                yield Certificate(f"that of {where}", parse_peer_validity(shown))


def list_bootstrap_addresses(servers: str) -> list[Address]:
    """Return the addresses of bootstrap servers, none for the embedded broker."""
    return [] if servers == "embedded" else list(parse_addresses(servers))


def find_missing_rights(
    needed: Sequence[Acl], there: Mapping[str, object], admin: Admin
) -> tuple[dict[ResourceName, MissingOperation], TopicCount]:
    """Return the rights on existing topics that this user lacks, and how many topics there were.

    The first one that is missing of each topic is named.
    """
    operations: dict[str, list[str]] = {}
    for acl in needed:
        is_topic = acl.resource_type is AclResource.TOPIC and acl.pattern is PatternType.LITERAL
        # A right to change settings is needed only where a setting would lose records.
        if is_topic and acl.operation is not AclOperation.ALTER_CONFIGS:
            operations.setdefault(acl.name, []).append(acl.operation)
    missing = {}
    visible = [topic for topic in operations if topic in there]
    for topic in operations:
        wanted = operations[topic] if topic in there else ["Describe"]
        try:
            admin.check_topic_rights({topic: wanted})
        except AuthorizationError as error:
            missing[f"topic {topic}"] = error.operation
    return missing, len(visible)
