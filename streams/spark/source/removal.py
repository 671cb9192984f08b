"""Explain why a partition begins above offset 0: what removes records from its beginning.

Retention (`retention.ms`, `retention.bytes`) removes whole segments where `cleanup.policy` has
`delete`; DeleteRecords removes whatever it is asked to, under any settings. Compaction alone never
moves the beginning of a log. Source: UnifiedLog.deleteOldSegments of Kafka 4.
"""

from __future__ import annotations

from collections.abc import Mapping

from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown, StreamsError
from streams.runtime.clients import Admin

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


def explain_removal(admin: Admin, partition: Partition, first_offset: int) -> str:
    """Describe in a sentence which records are gone, and what may have removed them.

    `first_offset`: the first of the partition that is still there.
    """
    try:
        cause = name_removal_cause(admin.fetch_topic_settings([partition.topic])[partition.topic])
    except (OutcomeUnknown, StreamsError) as error:
        cause = f"by retention or with DeleteRecords (the topic's settings can't be read: {error})"
    return f"the records of {partition} below offset {first_offset} are gone, removed {cause}"


def name_removal_cause(settings: Mapping[str, str]) -> str:
    """Name the settings of a topic that can remove its first records."""
    limits = []
    policy = settings.get("cleanup.policy", "delete")
    if "delete" in policy:
        retention_ms = int(settings.get("retention.ms", "-1"))
        if retention_ms >= 0:
            limits.append(f"retention.ms={retention_ms}, which is {_format_duration(retention_ms)}")
        retention_bytes = int(settings.get("retention.bytes", "-1"))
        if retention_bytes >= 0:
            limits.append(f"retention.bytes={retention_bytes}")
    if limits:
        return f"by retention ({'; '.join(limits)}) or with DeleteRecords"
    unlimited = "retention.ms=-1" if "delete" in policy else f"cleanup.policy={policy}"
    return f"with DeleteRecords: there is no retention ({unlimited})"


def _format_duration(duration_ms: int) -> str:
    for unit_ms, unit in _UNITS:
        if duration_ms >= unit_ms:
            return f"{duration_ms / unit_ms:.3g} {unit}"
    return f"{duration_ms} ms"
