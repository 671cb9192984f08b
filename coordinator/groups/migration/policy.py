"""Define `group.consumer.migration.policy`: which way a group with members may be converted.

An empty group of either kind makes way for one of the other, whatever the policy.
Source: org.apache.kafka.coordinator.group.ConsumerGroupMigrationPolicy.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MigrationPolicy:
    """Tells which conversions are allowed, and how many members a group of either kind may have.

    `allows_upgrade`: to the consumer protocol; `allows_downgrade`: back.
    """

    allows_upgrade: bool = True
    allows_downgrade: bool = True
    consumer_max_size: int = 2**31 - 1
    classic_max_size: int = 2**31 - 1

    @property
    def allows_classic_members(self) -> bool:
        """Return whether classic members may join a consumer group: not if neither way is."""
        return self.allows_upgrade or self.allows_downgrade

    @classmethod
    def from_name(cls, name: str, consumer_max_size: int, classic_max_size: int) -> MigrationPolicy:
        """Create the policy of a setting: `bidirectional`, `upgrade`, `downgrade`, else neither."""
        return cls(
            name in ("bidirectional", "upgrade"),
            name in ("bidirectional", "downgrade"),
            consumer_max_size,
            classic_max_size,
        )


BIDIRECTIONAL = MigrationPolicy()
