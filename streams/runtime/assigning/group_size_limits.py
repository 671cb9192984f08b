"""Look up how large a group's record and its requests may be, before one may be too large."""

from __future__ import annotations

import logging

from streams.errors import OutcomeUnknown, StreamsError
from streams.membership.group_record import RECORD_BYTES_MAX, REQUEST_BYTES_MAX, GroupSizeLimits
from streams.runtime.clients.interfaces import AdminClient

log = logging.getLogger(__name__)

_GROUPS_TOPIC, _RECORD_SETTING = "__consumer_offsets", "max.message.bytes"
_REQUEST_SETTING = "socket.request.max.bytes"


def fetch_group_size_limits(admin: AdminClient) -> GroupSizeLimits:
    """Return the brokers' limits for a group; Kafka's defaults where they aren't known.

    That is where the settings of `__consumer_offsets`, or of the brokers, may not be described
    (DescribeConfigs), or no broker answers.
    """
    return GroupSizeLimits(
        _fetch_record_bytes_max(admin),
        admin.fetch_strictest_broker_limit_or_default(_REQUEST_SETTING, REQUEST_BYTES_MAX),
    )


def _fetch_record_bytes_max(admin: AdminClient) -> int:
    """Return `max.message.bytes` of `__consumer_offsets`, or Kafka's default."""
    try:
        return int(admin.fetch_topic_settings([_GROUPS_TOPIC])[_GROUPS_TOPIC][_RECORD_SETTING])
    except (OutcomeUnknown, StreamsError, KeyError) as error:
        what = (_RECORD_SETTING, _GROUPS_TOPIC, RECORD_BYTES_MAX, error)
        log.info("%s of %s is taken to be %d: %s", *what)
        return RECORD_BYTES_MAX
