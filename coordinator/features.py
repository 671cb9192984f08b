"""Hold the finalised features, by level, on which clients may rely (KIP-584).

A feature is finalised only if it is served. `group.version` 1 is the consumer group protocol
(KIP-848), which tools check before they show such groups; `streams.version` 1 is the streams group
protocol (KIP-1071); `transaction.version` 2 makes the Java
client use transactions v2; `metadata.version` stands for the release as a whole, and its levels are
Kafka 4.3's.
Source: org.apache.kafka.server.common.{GroupVersion, TransactionVersion, MetadataVersion}.
"""

from __future__ import annotations

GROUP_VERSION = "group.version"
STREAMS_VERSION = "streams.version"
TRANSACTION_VERSION = "transaction.version"
METADATA_VERSION = "metadata.version"

# First and last supported level of each feature; level 0 means that it is not finalised.
SUPPORTED_LEVELS: dict[str, tuple[int, int]] = {
    METADATA_VERSION: (7, 30),
    GROUP_VERSION: (0, 1),
    STREAMS_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
}


class Features:
    """Holds the finalised feature levels of a broker; `epoch` rises with each change.

    `allows_consumer_protocol`, `allows_streams_protocol`: whether
    `group.coordinator.rebalance.protocols` has it.
    """

    def __init__(
        self,
        transaction_version: int = 2,
        group_version: int = 1,
        streams_version: int = 1,
        *,
        allows_consumer_protocol: bool = True,
        allows_streams_protocol: bool = True,
    ) -> None:
        self._allows_consumer_protocol = allows_consumer_protocol
        self._allows_streams_protocol = allows_streams_protocol
        self._levels = {
            METADATA_VERSION: 30,
            GROUP_VERSION: group_version,
            STREAMS_VERSION: streams_version,
            TRANSACTION_VERSION: transaction_version,
        }
        self.epoch = 0

    @property
    def finalised_levels(self) -> dict[str, int]:
        """Return the features whose level is above 0, with their levels."""
        return {name: level for name, level in self._levels.items() if level > 0}

    def has_consumer_protocol(self) -> bool:
        """Return whether the consumer protocol (KIP-848) is served: it is allowed and finalised."""
        return self._allows_consumer_protocol and self._levels[GROUP_VERSION] >= 1

    def has_streams_protocol(self) -> bool:
        """Return whether the streams protocol (KIP-1071) is served: it is allowed and finalised."""
        return self._allows_streams_protocol and self._levels[STREAMS_VERSION] >= 1

    def transaction_version(self) -> int:
        """Return the level of `transaction.version`: 2 for transactions v2 (KIP-890)."""
        return self._levels[TRANSACTION_VERSION]

    def set_level(self, name: str, level: int) -> None:
        """Finalise another level of a feature.

        Raises: ValueError for a level that isn't supported, KeyError for an unknown feature.
        """
        first, last = SUPPORTED_LEVELS[name]
        if not first <= level <= last:
            raise ValueError(f"{name}={level}: levels {first} to {last} are supported")
        if level != self._levels[name]:
            self._levels[name] = level
            self.epoch += 1
