"""Define the context of a request that API files are given: client, version and services.

kio has a class for each version of each request and response. API files name the newest version's,
for type checkers only: a handler takes any version's request, reads with `getattr` what older ones
lack, and builds the response in the version of the request. What only older versions have is marked
where it is read. `ReadFrame` and `CreateContext` are how the router and API files read frames.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias

from typing_extensions import TypeVar

from coordinator.api.request_counters import RequestCounters
from coordinator.clock import Clock, Scheduler
from coordinator.config import BrokerConfig
from coordinator.coordinators import Coordinators
from coordinator.dynamic_config import DynamicConfigs
from coordinator.features import Features
from coordinator.fetching.session_cache import FetchSessionCache
from coordinator.log.disk import DiskSpace
from coordinator.log.topics import TopicRegistry
from coordinator.wire.codec import build_entity

Response = TypeVar("Response", default=Any)


@dataclass(slots=True, kw_only=True)
class BrokerServices:
    """Holds the parts of a loaded broker that API files call.

    The broker replaces `config` when settings are altered, and `endpoint`, which has the node id,
    host and port for clients, once it listens.
    """

    config: BrokerConfig
    cluster_id: str
    endpoint: dict[str, Any]
    api_versions: list[dict[str, int]]  # as `router.list_api_versions` returns them
    clock: Clock
    scheduler: Scheduler
    features: Features
    dynamic_configs: DynamicConfigs
    topics: TopicRegistry
    coordinators: Coordinators
    fetch_sessions: FetchSessionCache
    request_counters: RequestCounters
    # Returns the total and the usable bytes of the data directory's file system.
    measure_disk_space: Callable[[], DiskSpace]


class RequestContext(NamedTuple, Generic[Response]):
    """Holds a request's version and client, the broker's services, and the response's type.

    Kafka's counterpart is RequestContext.
    """

    services: BrokerServices
    version: int
    client_id: str
    client_host: str
    response_type: type

    def build_response(self, **fields: Any) -> Response:
        """Build the response in the request's version from fields named as in the newest version.

        Error codes and durations are plain ints, structs are dicts. See `codec.build_entity`.
        """
        response: Response = build_entity(self.response_type, fields)
        return response


Request: TypeAlias = Any  # the decoded request, of the type of its API and version
# Gets a frame and the client's host; returns the decoded request and its context.
ReadFrame: TypeAlias = Callable[[bytes, str], tuple[Request, RequestContext]]
# Gets the client's id and host; returns the context of a request of one version.
CreateContext: TypeAlias = Callable[[str, str], RequestContext]
