"""Check the brokers: whether each answers, how soon, of which release, and by which clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from streams.common.addresses import Address, format_address
from streams.doctor.broker_probe import BrokerProbe, ClockSkew
from streams.doctor.findings import (
    DoctorFinding,
    create_error_finding,
    create_fine_finding,
    create_warning_finding,
)
from streams.doctor.latencies import LATE_S
from streams.doctor.stopped_processes import describe_stopped, suggest_continue_command
from streams.membership.kafka_release import (
    OLDEST_RELEASE,
    KafkaRelease,
    estimate_release,
    format_release,
)

BROKERS, LATENCY, RELEASE, CLOCK = "brokers", "latency of brokers", "release", "clock"
_SKEW_MAX_S = 5.0
_MENDED_RELEASE, _PATCHED_RELEASE = KafkaRelease(4, 0), KafkaRelease(3, 9)
_MS = 1_000


def check_reachable(
    probes: Sequence[BrokerProbe], stopped: Mapping[Address, int] = {}
) -> Iterator[DoctorFinding]:
    """Find brokers whose address can't be resolved, or that don't answer.

    `stopped` has the processes of this machine that are stopped by a signal, by their addresses.
    """
    for each in (probe for probe in probes if probe.failure):
        address = format_address(each.address)
        process = stopped.get(each.address)
        yield create_error_finding(
            BROKERS,
            f"the broker at {address} gives no answer: {each.failure}"
            + ("" if process is None else f"; {describe_stopped(process)}"),
            "the partitions that it leads stand still for this machine, and a coordinator among "
            "them stops the application",
            suggest_continue_command(process)
            if process is not None
            else f"let {each.address[0]} be resolved on this machine (DNS, /etc/hosts), or correct "
            "the broker's advertised.listeners"
            if each.is_unresolved
            else f"look whether that broker runs, and whether this machine reaches {address}",
        )
    if not any(each.failure for each in probes):
        yield create_fine_finding(BROKERS, f"{len(probes)} of {len(probes)} answer")


def check_latency(probes: Sequence[BrokerProbe]) -> Iterator[DoctorFinding]:
    """Find brokers that answer late, or that make this user wait by a quota."""
    answering = [each for each in probes if not each.failure]
    if not answering:
        return
    slow = [each for each in answering if each.latency_s > LATE_S]
    for each in slow:
        yield create_warning_finding(
            LATENCY,
            f"the broker at {format_address(each.address)} takes {each.latency_s:.1f} s to answer "
            "the smallest request",
            "commits take several times as long, and time-outs follow",
            "look at that broker's load, and at the network between",
        )
    for each in (probe for probe in answering if probe.throttle_s > 0):
        yield create_warning_finding(
            LATENCY,
            f"the broker at {format_address(each.address)} throttles this user by "
            f"{each.throttle_s:.1f} s (a quota)",
            "all requests of the application wait so long",
            "raise the quota of this user or client id with kafka-configs.sh",
        )
    if not slow:
        worst = max(each.latency_s for each in answering)
        yield create_fine_finding(LATENCY, f"{worst * _MS:.0f} ms at most for the smallest request")


def check_release(probes: Sequence[BrokerProbe], *, exactly_once: bool) -> Iterator[DoctorFinding]:
    """Find brokers that are too old, or of a release with a known defect."""
    releases = {estimate_release(each.api_versions) for each in probes if not each.failure}
    named = ", ".join(sorted(format_release(each) for each in releases))
    if not releases:
        return
    if None in releases:
        yield create_error_finding(
            RELEASE,
            f"by their API versions: {named}",
            "offsets can't be committed with the member (KIP-447), and a start is refused",
            f"upgrade the brokers to {OLDEST_RELEASE} at least, best to {_MENDED_RELEASE} or newer",
        )
        return
    oldest = min(each for each in releases if each is not None)
    if exactly_once and oldest < _MENDED_RELEASE:
        advice = "upgrade the brokers to 3.9.1, or to 4.0 or newer"
        if oldest == _PATCHED_RELEASE:
            advice = "if they are 3.9.1 or newer, which look alike to a client, all is well; else "
            advice += "upgrade them"
        yield create_warning_finding(
            RELEASE,
            f"by their API versions: {named}",
            "up to 3.9.0 the classic coordinator may lose a transaction's offsets if the next "
            "transaction commits at once (KAFKA-17507): records are processed again",
            advice,
        )
        return
    if len(releases) > 1:
        yield create_warning_finding(
            RELEASE,
            f"brokers of several releases: {named}",
            "new features wait, and what one broker answers another refuses",
            "end the upgrade of the brokers",
        )
        return
    yield create_fine_finding(RELEASE, f"by their API versions: {named}")


def check_clock(skew: ClockSkew) -> Iterator[DoctorFinding]:
    """Compare the clocks of brokers and machine."""
    ahead_s = skew.ahead_s
    if abs(ahead_s) - skew.error_s > _SKEW_MAX_S:
        yield create_warning_finding(
            CLOCK,
            f"the brokers' clock is {abs(ahead_s):.1f} s {'ahead of' if ahead_s > 0 else 'behind'} "
            "this machine's",
            "timestamps, retention by time, positions by time and the validity of tokens and "
            "certificates are off by so much",
            "let both take the time from one source (chrony, systemd-timesyncd): `timedatectl`",
        )
    else:
        yield create_fine_finding(
            CLOCK, f"{ahead_s:+.2f} s (± {skew.error_s:.2f} s) at the brokers"
        )
