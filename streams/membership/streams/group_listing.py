"""List the streams groups of a cluster (ListGroups, KIP-848), which librdkafka 2.16 leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from streams.errors import StreamsError
from streams.membership.application_group import STREAMS
from streams.membership.connection import (
    BrokerConnection,
    BrokerNotReady,
    OpenConnection,
    build_entity,
    load_request_classes,
)
from streams.membership.group_offsets import COORDINATOR_UNAVAILABLE_ERRORS
from streams.membership.streams.group_description import STREAMS_GROUP_DESCRIBE_API_KEY
from streams.membership.transactions import list_brokers

_LIST_GROUPS_API_KEY, _VERSION_WITH_TYPES = 16, 5


class StreamsGroupListing(NamedTuple):
    """Holds the name and the state of a group, as a broker lists it."""

    group: str
    state: str


def list_streams_groups(open_connection: OpenConnection) -> list[StreamsGroupListing]:
    """Return the streams groups of all brokers; none of a broker without this protocol.

    Groups that may not be described are left out. Raises: ConnectionLost where a broker does not
    answer, or is not ready.
    """
    found: list[StreamsGroupListing] = []
    for address in list_brokers(open_connection):
        with closing(open_connection(address)) as broker:
            if STREAMS_GROUP_DESCRIBE_API_KEY in broker.api_versions:
                found += _list_groups(broker)
    return found


def _list_groups(broker: BrokerConnection) -> Iterator[StreamsGroupListing]:
    """Yield the streams groups that one broker coordinates."""
    classes = load_request_classes(broker, _LIST_GROUPS_API_KEY, _VERSION_WITH_TYPES)
    request = build_entity(classes["ListGroupsRequest"], states_filter=(), types_filter=(STREAMS,))
    answer = broker.send_request(request)
    if answer.error_code in COORDINATOR_UNAVAILABLE_ERRORS:
        raise BrokerNotReady(f"groups can't be listed: {answer.error_code.name}")
    if answer.error_code is not ErrorCode.none:
        raise StreamsError(f"groups can't be listed: {answer.error_code.name}")
    for each in answer.groups:
        yield StreamsGroupListing(str(each.group_id), each.group_state)
