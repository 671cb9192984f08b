"""Start a node of any version: before 3.3, where KRaft was not ready, with a ZooKeeper."""

from __future__ import annotations

from tests.brokers import SETTINGS
from tests.kafka.server import RealKafka
from tests.kafka.zookeeper import ZooKeeperKafka


def parse_release(version: str) -> tuple[int, int]:
    """Return the major and the minor number of a version."""
    major, minor, _ = map(int, version.split("."))
    return major, minor


def start_node(version: str) -> RealKafka:
    """Start a node of a version; it is closed by whoever has it."""
    kind = ZooKeeperKafka if parse_release(version) < (3, 3) else RealKafka
    node = kind(SETTINGS, version=version)
    try:
        node.start()
    except BaseException:
        node.close()
        raise
    return node


def is_ledger_served(version: str) -> bool:
    """Return whether a version tells the producer of a transaction, which a ledger needs."""
    return parse_release(version) >= (3, 0)


def has_streams_groups(version: str) -> bool:
    """Return whether a version serves streams groups (KIP-1071): 4.1 had them for trials only."""
    return parse_release(version) >= (4, 2)
