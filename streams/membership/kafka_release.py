"""Estimate the release of Kafka that a broker is of, by the versions of its APIs.

No API tells a broker's release. Each minor release has versions of APIs that the one before had
not, and ApiVersions tells them to every client. Patch releases look alike. Source: the highest
versions in `ApiKeys` of kafka-clients from 2.4 to 4.4; `make versions` compares the estimate with
the release of a running node. Why not otherwise: docs/decisions/0085.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class KafkaRelease(NamedTuple):
    """Represents a minor release of Apache Kafka, as 3.9."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


OLDEST_RELEASE = KafkaRelease(2, 5)
"""The first that Millrace can use: offsets are committed with the member (KIP-447)."""

_FIRST_VERSIONS: Mapping[KafkaRelease, tuple[int, int]] = {
    KafkaRelease(2, 5): (9, 7),  # OffsetFetch
    KafkaRelease(2, 6): (16, 4),  # ListGroups
    KafkaRelease(2, 7): (1, 12),  # Fetch
    KafkaRelease(2, 8): (3, 11),  # Metadata
    KafkaRelease(3, 0): (10, 4),  # FindCoordinator
    KafkaRelease(3, 1): (1, 13),  # Fetch
    KafkaRelease(3, 2): (11, 9),  # JoinGroup
    KafkaRelease(3, 3): (35, 4),  # DescribeLogDirs; 3.4 has nothing newer for clients
    KafkaRelease(3, 5): (1, 15),  # Fetch
    KafkaRelease(3, 6): (24, 4),  # AddPartitionsToTxn
    KafkaRelease(3, 7): (1, 16),  # Fetch
    KafkaRelease(3, 8): (10, 5),  # FindCoordinator
    KafkaRelease(3, 9): (1, 17),  # Fetch
    KafkaRelease(4, 0): (0, 12),  # Produce
    KafkaRelease(4, 1): (1, 18),  # Fetch
    KafkaRelease(4, 2): (9, 10),  # OffsetFetch
    KafkaRelease(4, 3): (35, 5),  # DescribeLogDirs
    KafkaRelease(4, 4): (28, 6),  # TxnOffsetCommit
}
"""An API (its key) and a version of it that came with the release."""

_LATER_APIS: Mapping[int, tuple[str, KafkaRelease]] = {
    48: ("DescribeClientQuotas", KafkaRelease(2, 6)),
    60: ("DescribeCluster", KafkaRelease(2, 8)),
    61: ("DescribeProducers", KafkaRelease(2, 8)),
    65: ("DescribeTransactions", KafkaRelease(3, 0)),
    66: ("ListTransactions", KafkaRelease(3, 0)),
    68: ("ConsumerGroupHeartbeat", KafkaRelease(3, 7)),
    69: ("ConsumerGroupDescribe", KafkaRelease(3, 8)),
    88: ("StreamsGroupHeartbeat", KafkaRelease(4, 2)),
    89: ("StreamsGroupDescribe", KafkaRelease(4, 2)),
}


def estimate_release(api_versions: Mapping[int, int]) -> KafkaRelease | None:
    """Return the newest release whose versions a broker has; None for one older than 2.5.

    `api_versions` has the highest version of each API by its key. A broker of Kafka 3.4 counts as
    3.3, one newer than 4.4 as 4.4, and another vendor's as what it can do.
    """
    found = [
        release
        for release, (api_key, version) in _FIRST_VERSIONS.items()
        if api_versions.get(api_key, -1) >= version
    ]
    return max(found, default=None)


def format_release(release: KafkaRelease | None) -> str:
    """Return words for an estimated release, as `Kafka 3.9`."""
    if release is None:
        return f"a Kafka older than {OLDEST_RELEASE}"
    if release == KafkaRelease(3, 3):
        return "Kafka 3.3 or 3.4"
    if release == max(_FIRST_VERSIONS):
        return f"Kafka {release} or newer"
    return f"Kafka {release}"


def explain_missing_api(api_key: int, api_versions: Mapping[int, int]) -> str:
    """Return why a broker can't answer a request: which release has it, and which this one is."""
    if api_key not in _LATER_APIS:
        return f"the broker doesn't serve API {api_key}"
    name, release = _LATER_APIS[api_key]
    return (
        f"the broker doesn't serve {name}, which Kafka has from {release} on: by its API versions "
        f"it is of {format_release(estimate_release(api_versions))}"
    )
