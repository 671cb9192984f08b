"""The features that are finalised: what clients may count on, by level (KIP-584).

Claimed is only what is served. `group.version` 1 is the consumer group protocol (KIP-848), which
tools ask for before they show such groups; `transaction.version` 2 makes the Java client use
transactions v2; `metadata.version` stands for the release as a whole, its levels are Kafka 4.3's.
Source: org.apache.kafka.server.common.{GroupVersion, TransactionVersion, MetadataVersion}.
"""

from __future__ import annotations

GROUP_VERSION = "group.version"
TRANSACTION_VERSION = "transaction.version"
METADATA_VERSION = "metadata.version"

# First and last level of each; 0 is the level of a feature that is not finalised.
SUPPORTED: dict[str, tuple[int, int]] = {
    METADATA_VERSION: (7, 30),
    GROUP_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
}


class Features:
    """Levels that can be changed while the broker runs; `epoch` rises with each change."""

    def __init__(self, transaction_version: int = 2) -> None:
        self._levels = {
            METADATA_VERSION: 30,
            GROUP_VERSION: 1,
            TRANSACTION_VERSION: transaction_version,
        }
        self.epoch = 0

    @property
    def finalised(self) -> dict[str, int]:
        """Features at a level above 0."""
        return {name: level for name, level in self._levels.items() if level > 0}

    def level(self, name: str) -> int:
        return self._levels[name]

    def transaction_version(self) -> int:
        return self._levels[TRANSACTION_VERSION]

    def set(self, name: str, level: int) -> None:
        """Finalise another level. ValueError for one that isn't supported."""
        first, last = SUPPORTED[name]
        if not first <= level <= last:
            raise ValueError(f"{name}={level}: levels {first} to {last} are supported")
        if level != self._levels[name]:
            self._levels[name] = level
            self.epoch += 1
