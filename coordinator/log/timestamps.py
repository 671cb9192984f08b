"""Check the timestamps of a produced batch against the limits of its topic.

    topic           batch                                                outcome
    LogAppendTime   says that its times are a log's                      INVALID_TIMESTAMP
    LogAppendTime   any other                                            all get the time of arrival
    CreateTime      a record is later than now + `...after.max.ms`,      INVALID_TIMESTAMP
                    or earlier than now - `...before.max.ms`; records
                    without a time (-1) are neither

The latest time is in the batch's header, and is believed: Kafka works it out from the records. For
the earliest one the batch is opened, which only topics that set `message.timestamp.before.max.ms`
pay for.
Source: LogValidator.validateTimestamp.
"""

from __future__ import annotations

from coordinator.errors import Code, Refused
from coordinator.log.batch import RecordBatch
from coordinator.log.settings import NEVER, LogSettings

_NO_TIMESTAMP = -1


def check_timestamps(batch: RecordBatch, settings: LogSettings, now_ms: int) -> None:
    """Raise Refused if the timestamps of a produced batch are outside the topic's limits.

    Raises: Refused (INVALID_TIMESTAMP; INVALID_RECORD if the batch has to be opened and can't be).
    """
    if settings.log_append_time:
        if batch.is_log_append_time:
            raise Refused(Code.INVALID_TIMESTAMP, "a producer's times are not a log's")
        return
    if batch.max_timestamp_ms > now_ms + settings.timestamp_after_max_ms:
        raise Refused(Code.INVALID_TIMESTAMP, f"{batch.max_timestamp_ms} is in the future")
    if settings.timestamp_before_max_ms < NEVER:
        earliest_ms = now_ms - settings.timestamp_before_max_ms
        try:
            for record in batch.iterate_records():
                if _NO_TIMESTAMP != record.timestamp_ms < earliest_ms:
                    raise Refused(
                        Code.INVALID_TIMESTAMP, f"{record.timestamp_ms} is before {earliest_ms}"
                    )
        except (ValueError, IndexError) as error:
            raise Refused(Code.INVALID_RECORD, f"the records can't be read: {error}") from error
