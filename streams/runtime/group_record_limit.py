"""Look up how large the record of a group may be, for the leader that is about to write it."""

from __future__ import annotations

import logging

from streams.errors import OutcomeUnknown, StreamsError
from streams.membership.group_record import RECORD_BYTES_MAX
from streams.runtime.interfaces import AdminClient

log = logging.getLogger(__name__)

_GROUPS_TOPIC, _SETTING = "__consumer_offsets", "max.message.bytes"


def fetch_group_record_bytes_max(admin: AdminClient) -> int:
    """Return `max.message.bytes` of `__consumer_offsets`; Kafka's default where it isn't known.

    That is where its settings may not be described (DescribeConfigs), or no broker answers.
    """
    try:
        return int(admin.fetch_topic_settings([_GROUPS_TOPIC])[_GROUPS_TOPIC][_SETTING])
    except (OutcomeUnknown, StreamsError, KeyError) as error:
        log.info("%s of %s is taken to be %d: %s", _SETTING, _GROUPS_TOPIC, RECORD_BYTES_MAX, error)
        return RECORD_BYTES_MAX
