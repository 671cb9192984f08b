"""Find out whether a broker serves streams groups, and which protocol a group has now.

what the broker tells                                      what it serves
no StreamsGroupHeartbeat (API 88)                          classic groups only: Kafka up to 4.1
the API, and the feature streams.version is 0, or absent   classic groups only
both                                                       streams groups
"""

from __future__ import annotations

from contextlib import closing

from kio.index import load_request_schema

from streams.membership.connection import (
    BrokerConnection,
    OpenConnection,
    find_coordinator,
)
from streams.membership.group_description import describe_group
from streams.membership.kafka_release import KafkaRelease, estimate_release, explain_missing_api
from streams.membership.streams.group_description import (
    STREAMS_GROUP_DESCRIBE_API_KEY,
    describe_streams_group,
)
from streams.membership.streams.heartbeat_request import STREAMS_GROUP_HEARTBEAT_API_KEY

BROKEN_MIGRATION_RELEASE = KafkaRelease(4, 2)
"""Kafka 4.2.0 loses offsets when a group changes to the streams protocol (KAFKA-20254). To clients
4.2.1 looks the same."""
_API_VERSIONS_API_KEY, _API_VERSIONS_WITH_FEATURES = 18, 3
_FEATURE = "streams.version"
_EMPTY_STATES = {"Empty", "Dead"}


def explain_missing_streams_groups(connection: BrokerConnection) -> str:
    """Return why a broker serves no streams groups; empty if it does.

    Raises: ConnectionLost if no answer comes.
    """
    if STREAMS_GROUP_HEARTBEAT_API_KEY not in connection.api_versions:
        return explain_missing_api(STREAMS_GROUP_HEARTBEAT_API_KEY, connection.api_versions)
    request = load_request_schema(_API_VERSIONS_API_KEY, _API_VERSIONS_WITH_FEATURES)
    answer = connection.send_request(
        request(client_software_name="millrace", client_software_version="0")  # type: ignore[call-arg]
    )
    levels = {each.name: int(each.max_version_level) for each in answer.finalized_features}
    if levels.get(_FEATURE, 0) > 0:
        return ""
    return (
        f"the brokers have streams groups, and their feature {_FEATURE} is not enabled "
        f"(kafka-features.sh upgrade --feature {_FEATURE}=1)"
    )


def find_live_protocol(open_connection: OpenConnection, group_id: str) -> str:
    """Return the protocol of a group that has members, `classic` or `streams`; empty for none.

    `classic` stands for any other protocol as well: what it comes to is found when it is joined.
    Raises: ConnectionLost where the coordinator does not answer, AuthorizationError, StreamsError
    for another refusal.
    """
    with closing(open_connection(None)) as bootstrap:
        address = find_coordinator(bootstrap, group_id)
    with closing(open_connection(address)) as connection:
        group = describe_group(connection, group_id)
        if group is not None and group.state not in _EMPTY_STATES:
            return "classic"
        if STREAMS_GROUP_DESCRIBE_API_KEY not in connection.api_versions:
            return ""
        streams_group = describe_streams_group(connection, group_id)
        return "streams" if streams_group is not None and streams_group.members else ""


def explain_broken_migration(connection: BrokerConnection) -> str:
    """Return why a group must not change its protocol on a broker; empty if it may."""
    if estimate_release(connection.api_versions) != BROKEN_MIGRATION_RELEASE:
        return ""
    return (
        f"by their API versions the brokers are of Kafka {BROKEN_MIGRATION_RELEASE}: 4.2.0 loses "
        "the offsets of a group that changes to the streams protocol (KAFKA-20254)"
    )
