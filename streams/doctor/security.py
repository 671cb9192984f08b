"""Check certificates, tokens and rights of the connection to the brokers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from streams.command_lines import format_command
from streams.common.counted import format_count
from streams.connection.certificate_validity import CertificateValidity
from streams.doctor.findings import (
    RIGHTS,
    DoctorFinding,
    create_error_finding,
    create_fine_finding,
    create_warning_finding,
)

CERTIFICATES, TOKEN = "certificates", "token"
_RENEWED_BEFORE = timedelta(days=14)
_RENEWAL = (
    "put a new certificate of the authority in its place, a worker that runs takes it up, and run "
    "the doctor again"
)


class Certificate(NamedTuple):
    """Holds whose certificate it is, where it is, and when it is valid."""

    owner: str
    validity: CertificateValidity


def check_certificates(
    certificates: Sequence[Certificate], now: datetime
) -> Iterator[DoctorFinding]:
    """Find certificates that have expired, or will within two weeks."""
    fine = True
    for owner, validity in certificates:
        until = f"{validity.end:%Y-%m-%d %H:%M} UTC"
        if not validity.begin <= now <= validity.end:
            fine = False
            yield create_error_finding(
                CERTIFICATES,
                f"{owner} is valid from {validity.begin:%Y-%m-%d %H:%M} to {until} only",
                "new connections are refused, those of a worker that runs when they end",
                _RENEWAL,
            )
        elif validity.end - now < _RENEWED_BEFORE:
            fine = False
            yield create_warning_finding(
                CERTIFICATES,
                f"{owner} is valid until {until}: {_format_time_left(validity.end - now)} more",
                "new connections are refused then",
                _RENEWAL,
            )
    if certificates and fine:
        first = min(certificates, key=lambda each: each.validity.end)
        yield create_fine_finding(
            CERTIFICATES,
            f"{format_count(len(certificates), 'certificate')}; the first to expire, {first.owner},"
            f" is valid until {first.validity.end:%Y-%m-%d}",
        )


def check_token(ends_at_s: float, now_s: float) -> Iterator[DoctorFinding]:
    """Say how long a token that was just fetched is valid."""
    left_s = ends_at_s - now_s
    if left_s <= 0:
        yield create_error_finding(
            TOKEN,
            f"the provider gives tokens that have expired, {-left_s:,.0f} s ago",
            "no connection can be made",
            "compare the clocks of this machine and the provider",
        )
    else:
        yield create_fine_finding(TOKEN, f"a new one is valid for {left_s:,.0f} s")


def check_rights(missing: Mapping[str, str], looked_at: int) -> Iterator[DoctorFinding]:
    """Find rights that the application needs and this user lacks: `missing`, by resource."""
    for what, right in missing.items():
        yield create_error_finding(
            RIGHTS,
            f"this user may not {right} {what}",
            "an application with this user ends when it needs that",
            f"{format_command('acls')} lists the ACLs to add",
        )
    if looked_at and not missing:
        yield create_fine_finding(
            RIGHTS,
            f"all on {format_count(looked_at, 'topic')}; brokers don't tell those on transactional "
            "ids",
        )


def _format_time_left(left: timedelta) -> str:
    return f"{left.days} days" if left.days >= 2 else f"{left // timedelta(hours=1)} h"


def parse_peer_validity(certificate: Mapping[str, object]) -> CertificateValidity:
    """Return the validity of a peer's certificate, as `ssl` shows it."""
    begin, end = (
        datetime.strptime(str(certificate[name]), "%b %d %H:%M:%S %Y %Z").replace(tzinfo=UTC)
        for name in ("notBefore", "notAfter")
    )
    return CertificateValidity(begin, end)
