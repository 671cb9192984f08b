"""What an API file is given with a request: who asks, in which version, and the broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from coordinator.wire.codec import build

if TYPE_CHECKING:
    from coordinator.broker import Broker


class Context(NamedTuple):
    """One request's surroundings."""

    broker: Broker
    version: int
    client_id: str
    client_host: str
    response_type: type

    def reply(self, **fields: Any) -> Any:
        """The response of the request's version: kio's field names as in the newest version,
        plain ints for error codes and durations, dicts for structs. See `codec.build`."""
        return build(self.response_type, fields)
