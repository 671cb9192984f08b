"""Check the groups that read an application's outputs: whether one reads uncommitted records.

Brokers don't tell which `isolation.level` a reader has. A reader of committed records can't commit
an offset beyond the last stable one. So an offset beyond it, which was fetched before that was, is
of a reader that takes uncommitted records; no such offset proves nothing. What was so before is
found by the times of commits (`early_commits`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from streams.command_lines import format_command, format_kafka_command
from streams.common.topic_partitions import Partition
from streams.doctor.findings import (
    DoctorFinding,
    create_error_finding,
    create_fine_finding,
    create_unknown_finding,
)

GroupId: TypeAlias = str

ISOLATION = "isolation of readers"
_LOOKS, _PAUSE_S = 5, 0.2
_CLIENTS_SHOWN = 3
_REQUEST_LOG = (
    "kafka-request.log in the log directory of each broker ($LOG_DIR, or logs/ of Kafka's "
    "installation; its log4j2.yaml says where else)"
)

GroupOffsets = Mapping[Partition, int]
"""The committed offsets of one group."""


def find_uncommitted_reads(
    groups: Sequence[str],
    fetch_offsets: Callable[[str], GroupOffsets],
    fetch_stable: Callable[[Sequence[Partition]], Mapping[Partition, int]],
    outputs: Sequence[Partition],
    pause_s: float = _PAUSE_S,
) -> tuple[dict[GroupId, Partition], list[GroupId]]:
    """Look several times; return groups beyond a last stable offset, and all that read outputs."""
    wanted = set(outputs)
    proven: dict[str, Partition] = {}
    readers: list[str] = []
    for look in range(_LOOKS):
        if look:
            time.sleep(pause_s)
        watched = groups if not look else [each for each in readers if each not in proven]
        for group in watched:
            offsets = {p: at for p, at in fetch_offsets(group).items() if p in wanted}
            if not offsets:
                continue
            if not look:
                readers.append(group)
            stable = fetch_stable(sorted(offsets))
            beyond = sorted(p for p, at in offsets.items() if at > stable[p])
            if beyond:
                proven.setdefault(group, beyond[0])
        if len(proven) == len(readers):
            break
    return proven, readers


def _advise_on_request_log(client_ids: Sequence[str], broker_ids: Sequence[int]) -> str:
    """Return how the brokers' log of requests decides it; empty where there is none."""
    if not broker_ids:
        return ""
    logger = ("--entity-type", "broker-loggers", "--entity-name", str(broker_ids[0]))
    begin, end = (
        format_kafka_command("kafka-configs.sh", "--alter", *logger, option, value)
        for option, value in (
            ("--add-config", "kafka.request.logger=DEBUG"),
            ("--delete-config", "kafka.request.logger"),
        )
    )
    brokers = "" if len(broker_ids) == 1 else f", and for the brokers {broker_ids[1:]} alike"
    names = " or ".join(f'"clientId":"{each}"' for each in client_ids[:_CLIENTS_SHOWN])
    return (
        f"to decide it: (1) let the brokers log requests for a minute: {begin}{brokers}. (2) Look "
        f"into {_REQUEST_LOG}: in its lines with FETCH and "
        f'{names or "the client id of the reader"}, "isolationLevel":0 means uncommitted records, '
        f"and 1 committed ones. (3) Switch the logger off again, as each request is a line: {end}"
    )


def check_isolation(
    proven: Mapping[str, Partition],
    readers: Sequence[str],
    compared: str = "",
    client_ids: Sequence[str] = (),
    broker_ids: Sequence[int] = (),
) -> Iterator[DoctorFinding]:
    """Say which groups read the outputs, and which of them take uncommitted records.

    `compared` says what was looked at besides, `client_ids` are those of the readers' members.
    `broker_ids` are the brokers that can log requests, which would tell.
    """
    for group, partition in proven.items():
        yield create_error_finding(
            ISOLATION,
            f"group {group!r} has committed an offset of {partition} beyond the last stable one of "
            "that time: it reads uncommitted records",
            "it sees results of transactions that are aborted later, and so results twice",
            f"set isolation.level=read_committed in the consumers of {group!r} "
            f"({format_command('group list')} shows the groups)",
        )
    others = [each for each in readers if each not in proven]
    if others:
        finding = create_unknown_finding(
            ISOLATION,
            f"brokers don't tell the isolation.level of {', '.join(map(repr, others))}, which read "
            f"the outputs; none was seen to read uncommitted records{compared}. To be sure, look "
            "into the settings of those programs: Java's consumers take uncommitted records unless "
            "isolation.level=read_committed is set; librdkafka's only if it is set to "
            "read_uncommitted",
        )
        yield replace(finding, remedy=_advise_on_request_log(client_ids, broker_ids))
    if not readers:
        yield create_fine_finding(ISOLATION, "no other group has committed offsets of the outputs")
