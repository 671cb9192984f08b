"""Test that the dates of a certificate are read as a library for certificates reads them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from streams.connection.certificate_validity import (
    CertificateValidity,
    explain_invalidity,
    read_certificate_validity,
)
from tests.kafka.secured.certificates import Authority

YEAR = timedelta(days=365)


@pytest.mark.parametrize("valid_for", [timedelta(seconds=5), -timedelta(days=1), 60 * YEAR])
def test_the_dates_are_those_in_the_certificate(authority: Authority, valid_for: timedelta) -> None:
    """From 2050 on a certificate has another form of time."""
    pem = authority.issue_client("user", valid_for=valid_for).certificate_path.read_bytes()
    read = x509.load_pem_x509_certificate(pem)
    expected = CertificateValidity(read.not_valid_before_utc, read.not_valid_after_utc)
    assert read_certificate_validity(b"the first of a chain\n" + pem + b"more") == expected


def test_what_is_no_certificate_has_no_dates(authority: Authority, tmp_path: Path) -> None:
    pem = authority.path.read_bytes()
    begin, end = b"-----BEGIN CERTIFICATE-----\n", b"\n-----END CERTIFICATE-----\n"
    assert read_certificate_validity(b"") is None
    assert read_certificate_validity(pem.replace(b"END", b"")) is None
    for content in (b"", b"!", b"MAA=", b"MIIB", b"MDAwMA==", pem.splitlines()[1]):
        assert read_certificate_validity(begin + content + end) is None


def test_a_certificate_that_is_not_valid_now_is_explained_with_its_date() -> None:
    day = timedelta(days=1)
    now = datetime(2030, 1, 10, tzinfo=UTC)
    assert explain_invalidity(CertificateValidity(now - day, now + day), now) == ""
    expired = explain_invalidity(CertificateValidity(now - 2 * day, now - day), now)
    assert expired == "which has expired: it was valid until 2030-01-09 00:00:00 UTC"
    early = explain_invalidity(CertificateValidity(now + day, now + 2 * day), now)
    assert early == "which is not valid yet: it is from 2030-01-11 00:00:00 UTC on"
