"""Provide an embedded broker that speaks the Kafka protocol.

Start reading at `broker`, which assembles its parts, then `shard` and `coordinators`. It knows
nothing of streams and stores: any Kafka client is served alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coordinator.embedded import EmbeddedBroker

__all__ = ["EmbeddedBroker"]


def __getattr__(name: str) -> Any:
    # Imported on demand: code that needs only `coordinator.assignors` doesn't load the broker.
    if name == "EmbeddedBroker":
        from coordinator.embedded import EmbeddedBroker

        return EmbeddedBroker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
