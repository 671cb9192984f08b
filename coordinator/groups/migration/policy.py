"""`group.consumer.migration.policy`: which way a group with members may be converted.

An empty group of either kind makes way for one of the other, whatever the policy.
Source: org.apache.kafka.coordinator.group.ConsumerGroupMigrationPolicy.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MigrationPolicy:
    """`upgrade`: to the consumer protocol; `downgrade`: back. The sizes are what a group of either
    kind may have of members."""

    upgrade: bool = True
    downgrade: bool = True
    consumer_max_size: int = 2**31 - 1
    classic_max_size: int = 2**31 - 1

    @classmethod
    def named(cls, name: str, consumer_max_size: int, classic_max_size: int) -> MigrationPolicy:
        """`bidirectional`, `upgrade`, `downgrade`, and whatever else disables both."""
        return cls(
            name in ("bidirectional", "upgrade"),
            name in ("bidirectional", "downgrade"),
            consumer_max_size,
            classic_max_size,
        )


BIDIRECTIONAL = MigrationPolicy()
