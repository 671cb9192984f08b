"""Defines the context of a request that API files are given: client, version and broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from coordinator.wire.codec import build_entity

if TYPE_CHECKING:
    from coordinator.broker import Broker


class RequestContext(NamedTuple):
    """Holds a request's broker, version and client, and the type of its response.

    Kafka's counterpart is RequestContext.
    """

    broker: Broker
    version: int
    client_id: str
    client_host: str
    response_type: type

    def build_response(self, **fields: Any) -> Any:
        """Build the response in the request's version from fields named as in the newest version.

        Error codes and durations are plain ints, structs are dicts. See `codec.build_entity`.
        """
        return build_entity(self.response_type, fields)
