"""Give a streams group on the broker what a classic group's members say themselves (KIP-1071)."""

from __future__ import annotations

from coordinator.errors import Code
from tests.answers import codes
from tests.conformance.wire import Api, Client

_GROUP_RESOURCE = 32


def configure_group(
    servers: str, group: str, *, standbys: int, session_ms: int, heartbeat_ms: int
) -> None:
    """Set the group's standby tasks and times. Raises RuntimeError if the broker refuses them."""
    configs = {
        "streams.num.standby.replicas": standbys,
        "streams.session.timeout.ms": session_ms,
        "streams.heartbeat.interval.ms": heartbeat_ms,
    }
    changes = [
        {"name": name, "config_operation": 0, "value": str(value)}
        for name, value in configs.items()
    ]
    resource = {"resource_type": _GROUP_RESOURCE, "resource_name": group, "configs": changes}
    with Client(servers) as client:
        answer = client.send(Api.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
    if set(codes(answer)) != {Code.NONE}:
        raise RuntimeError(f"the broker refuses {configs} for group {group}: {answer}")
