"""Read from when until when a client certificate is valid, to say why a broker refuses it.

A broker may refuse one that has expired with an alert that does not tell why, as Java's
`certificate_unknown` does. Python's `ssl` shows the dates of a peer's certificate only, so the
client's own is read here: PEM (RFC 7468) around DER, of which nothing but the way to the validity
is decoded (RFC 5280, 4.1).
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

Tag: TypeAlias = int
Content: TypeAlias = bytes

_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
_VERSION, _UTC_TIME, _GENERALIZED_TIME = 0xA0, 0x17, 0x18
_FORMATS = {_UTC_TIME: "%y%m%d%H%M%SZ", _GENERALIZED_TIME: "%Y%m%d%H%M%SZ"}
_BEFORE_VALIDITY = 3
"""The serial number, the algorithm of the signature and the issuer come before the validity."""
_LONG_LENGTH = 0x80
_CENTURY_YEARS = 100
_LAST_YEAR_OF_UTC_TIME = 2049


class CertificateValidity(NamedTuple):
    """Holds the first and the last moment at which a certificate is valid."""

    begin: datetime
    end: datetime


def read_certificate_validity(pem: bytes) -> CertificateValidity | None:
    """Return the validity of the first certificate in a PEM text; None if it can't be read."""
    found = _PEM.search(pem)
    if found is None:
        return None
    try:
        ((_, certificate),) = _iterate_elements(binascii.a2b_base64(found[1]))
        _, signed = next(_iterate_elements(certificate))
        elements = [each for each in _iterate_elements(signed) if each[0] != _VERSION]
        _, validity = elements[_BEFORE_VALIDITY]
        begin, end = (_parse_time(tag, text) for tag, text in _iterate_elements(validity))
    except (ValueError, LookupError, StopIteration):
        return None
    return CertificateValidity(begin, end)


def explain_invalidity(validity: CertificateValidity, now: datetime) -> str:
    """Say why a certificate is not valid now, with the date; empty if it is valid."""
    if now > validity.end:
        return f"which has expired: it was valid until {validity.end:%Y-%m-%d %H:%M:%S} UTC"
    if now < validity.begin:
        return f"which is not valid yet: it is from {validity.begin:%Y-%m-%d %H:%M:%S} UTC on"
    return ""


def _iterate_elements(encoded: bytes) -> Iterator[tuple[Tag, Content]]:
    """Yield tag and content of the DER elements of a sequence, one after the other."""
    offset = 0
    while offset < len(encoded):
        tag, length = encoded[offset], encoded[offset + 1]
        offset += 2
        if length >= _LONG_LENGTH:
            size = length - _LONG_LENGTH
            length = int.from_bytes(encoded[offset : offset + size], "big")
            offset += size
        yield tag, encoded[offset : offset + length]
        offset += length


def _parse_time(tag: int, text: bytes) -> datetime:
    """Parse a UTCTime, whose year of two digits is one of 1950 to 2049, or a GeneralizedTime."""
    parsed = datetime.strptime(text.decode("ascii"), _FORMATS[tag]).replace(tzinfo=UTC)
    if tag == _UTC_TIME and parsed.year > _LAST_YEAR_OF_UTC_TIME:
        return parsed.replace(year=parsed.year - _CENTURY_YEARS)
    return parsed
