"""Ask each broker for its data directories, and check that they have room (KIP-827).

A broker of Kafka whose directory is full gives it up, and ends if it has no other. An embedded one
refuses writes and goes on, so that its clients see nothing but time-outs.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from streams.common.addresses import Address, format_address
from streams.doctor.findings import (
    DoctorFinding,
    create_error_finding,
    create_fine_finding,
    create_unknown_finding,
    create_warning_finding,
)
from streams.doctor.machine import format_bytes
from streams.errors import AuthorizationError
from streams.membership.connection import BrokerConnection, build_entity, load_request_classes

BROKER_DISKS = "disks of brokers"
_DESCRIBE_LOG_DIRS_API_KEY, _WITH_SPACE = 35, 4
_FREE_MIN_BYTES, _FREE_MIN_PART = 100 << 20, 0.02
_FREE_WISE_BYTES, _FREE_WISE_PART = 1 << 30, 0.05


@dataclass(frozen=True, slots=True)
class BrokerLogDirectory:
    """Holds the space of the file system of one data directory of a broker, in bytes.

    `failure` is the name of the code with which the broker has given the directory up.
    """

    broker: str
    directory: str
    free_bytes: int
    total_bytes: int
    failure: str = ""


def fetch_broker_disks(
    addresses: Sequence[Address],
    open_connection: Callable[[Address], BrokerConnection],
) -> list[BrokerLogDirectory] | None:
    """Ask each broker for its directories; None where one does not tell their space.

    Raises: AuthorizationError, ConnectionLost.
    """
    found = []
    for address in addresses:
        with closing(open_connection(address)) as connection:
            if connection.api_versions.get(_DESCRIBE_LOG_DIRS_API_KEY, 0) < _WITH_SPACE:
                return None
            classes = load_request_classes(connection, _DESCRIBE_LOG_DIRS_API_KEY, _WITH_SPACE)
            answer = connection.send_request(
                build_entity(classes["DescribeLogDirsRequest"], topics=())
            )
        if int(answer.error_code) == ErrorCode.cluster_authorization_failed:
            raise AuthorizationError("Describe", "cluster", "kafka-cluster")
        for each in answer.results:
            code = int(each.error_code)
            found.append(
                BrokerLogDirectory(
                    format_address(address),
                    each.log_dir,
                    int(each.usable_bytes),
                    int(each.total_bytes),
                    ErrorCode(code).name.upper() if code else "",
                )
            )
    return found


def check_broker_disks(disks: Sequence[BrokerLogDirectory] | None) -> Iterator[DoctorFinding]:
    """Find directories of brokers that are given up, full, or nearly full."""
    if disks is None:
        yield create_unknown_finding(
            BROKER_DISKS, "a broker does not tell the space that it has (from 3.3)"
        )
        return
    told = [each for each in disks if each.total_bytes > 0 or each.failure]
    faults = [finding for each in told if (finding := _judge_disk(each)) is not None]
    yield from faults
    if told and not faults:
        least = min(told, key=lambda each: each.free_bytes)
        yield create_fine_finding(
            BROKER_DISKS,
            f"{format_bytes(least.free_bytes)} free at least, of {least.directory} at "
            f"{least.broker}",
        )


def _judge_disk(disk: BrokerLogDirectory) -> DoctorFinding | None:
    """Return the finding on a broker's log directory, None if it is healthy."""
    place = f"{disk.directory} of the broker at {disk.broker}"
    remedy = (
        f"make room on that machine (`df -h {shlex.quote(disk.directory)}` names the disk), or "
    )
    remedy += "let topics keep less (retention.ms, retention.bytes)"
    if disk.failure:
        return create_error_finding(
            BROKER_DISKS,
            f"{place} is given up ({disk.failure})",
            "the partitions in it are served by other brokers, or by none",
            "look at the disk and at the broker's log, and start the broker again",
        )
    what = f"{place} has {format_bytes(disk.free_bytes)} free of {format_bytes(disk.total_bytes)}"
    if disk.free_bytes < min(_FREE_MIN_BYTES, int(disk.total_bytes * _FREE_MIN_PART)):
        consequence = "writes are refused, and so nothing is committed: workers log time-outs"
        return create_error_finding(BROKER_DISKS, what, consequence, remedy)
    if disk.free_bytes < min(_FREE_WISE_BYTES, int(disk.total_bytes * _FREE_WISE_PART)):
        return create_warning_finding(
            BROKER_DISKS, what, "writes are refused when it is full", remedy
        )
    return None
