"""Read settings of what confluent-kafka knows no kind of: groups, and the loggers of a broker.

API: DescribeConfigs (32), KIP-226, KIP-412 (loggers), KIP-848 (groups).
"""

from __future__ import annotations

from enum import IntEnum

from kio.schema.errors import ErrorCode

from streams.errors import StreamsError
from streams.membership.authorization import check_authorized
from streams.membership.connection import BrokerConnection, build_entity, load_request_classes

_DESCRIBE_CONFIGS_API_KEY, _VERSION_MAX = 32, 4


class ConfigKind(IntEnum):
    """Numbers the kinds of resources whose settings are read here, as Kafka does."""

    BROKER_LOGGER = 8
    GROUP = 32


def fetch_setting(
    connection: BrokerConnection, kind: ConfigKind, name: str, setting: str
) -> str | None:
    """Return a setting of a resource, None where the broker has none of this name.

    Raises: ConnectionLost where no answer comes, AuthorizationError, StreamsError where the broker
    refuses the question.
    """
    classes = load_request_classes(connection, _DESCRIBE_CONFIGS_API_KEY, _VERSION_MAX)
    resource = build_entity(
        classes["DescribeConfigsResource"],
        resource_type=int(kind),
        resource_name=name,
        configuration_keys=(setting,),
    )
    request = build_entity(classes["DescribeConfigsRequest"], resources=(resource,))
    (found,) = connection.send_request(request).results
    check_authorized(found.error_code, "DescribeConfigs", name)
    if found.error_code is not ErrorCode.none:
        raise StreamsError(f"{found.error_code.name}, {found.error_message or 'without a reason'}")
    value = {each.name: each.value for each in found.configs}.get(setting)
    return None if value is None else str(value)
