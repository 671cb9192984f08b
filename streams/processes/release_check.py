"""Compare what an application needs with the release of Kafka that its brokers are of."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from streams.errors import ConfigError
from streams.membership.kafka_release import (
    OLDEST_RELEASE,
    KafkaRelease,
    estimate_release,
    format_release,
)
from streams.settings.config import StreamsConfig

log = logging.getLogger(__name__)

_DESCRIBE_TRANSACTIONS = 65
_LEDGER_RELEASE = KafkaRelease(3, 0)
"""The first release with DescribeTransactions (KIP-664), which tells a transaction's producer."""
_MENDED_RELEASE = KafkaRelease(4, 0)
"""The first minor release in which all patch releases have KAFKA-17507 mended."""


def check_broker_release(config: StreamsConfig, api_versions: Mapping[int, int]) -> None:
    """Raise ConfigError if the brokers lack what the application needs; warn of KAFKA-17507.

    `api_versions` has the highest version of each API of the broker that was asked.
    """
    release = estimate_release(api_versions)
    named = format_release(release)
    if release is None:
        raise ConfigError(
            f"bootstrap_servers={config.bootstrap_servers}: by their API versions the brokers are "
            f"of {named}: Millrace needs {OLDEST_RELEASE} (KIP-447). Upgrade the brokers, best to "
            f"{_MENDED_RELEASE} or newer"
        )
    if config.ledger and _DESCRIBE_TRANSACTIONS not in api_versions:
        raise ConfigError(
            f"ledger=True needs Kafka {_LEDGER_RELEASE} or newer (DescribeTransactions, KIP-664), "
            f"and by their API versions the brokers are of {named}: set ledger=False, or upgrade "
            "the brokers"
        )
    if config.exactly_once and release < _MENDED_RELEASE:
        log.warning("%s", _describe_race(release, named))


def _describe_race(release: KafkaRelease, named: str) -> str:
    """Describe KAFKA-17507, and whether a patch release may have it mended."""
    advice = "Upgrade the brokers to 3.9.1, or to 4.0 or newer"
    if release == KafkaRelease(3, 9):
        advice = (
            "If they are 3.9.1 or newer, which look alike to a client, all is well; else upgrade "
            "them"
        )
    return (
        f"by their API versions the brokers are of {named}: up to and including 3.9.0 Kafka's "
        "classic group coordinator may lose the offsets of a transaction if they are committed "
        "right after those of the one before (KAFKA-17507), upon which records are processed "
        f"again. {advice}"
    )
