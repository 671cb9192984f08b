"""Check an application's settings against each other and against those of the brokers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streams.command_lines import format_kafka_command
from streams.doctor.findings import (
    DoctorFinding,
    create_error_finding,
    create_fine_finding,
    create_warning_finding,
)
from streams.settings.config import StreamsConfig

GUARANTEE, TRANSACTION_TIMEOUT = "guarantee", "transaction time-out"
SESSION_TIMEOUT, OFFSET_RETENTION = "session time-out", "retention of offsets"
_COMMITS_PER_TIMEOUT = 2.5
_MAX_TIMEOUT = "transaction.max.timeout.ms"
_SESSION_LIMITS = "group.min.session.timeout.ms", "group.max.session.timeout.ms"
_OFFSET_RETENTION, _ID_EXPIRATION = "offsets.retention.minutes", "transactional.id.expiration.ms"
_MS_PER_MINUTE, _MS_PER_DAY = 60_000, 86_400_000
_RETENTION_WISE_MS = 7 * _MS_PER_DAY
"""Kafka's defaults: an application may stand still over holidays."""

BrokerSettings = Mapping[int, Mapping[str, str]]
"""The settings in force of brokers, by their numbers."""


def check_guarantee(config: StreamsConfig) -> Iterator[DoctorFinding]:
    """Say which guarantee the application has; at least once is a warning."""
    if config.exactly_once:
        yield create_fine_finding(GUARANTEE, f"processing_guarantee={config.processing_guarantee}")
    else:
        yield create_warning_finding(
            GUARANTEE,
            "processing_guarantee=at_least_once",
            "after a crash records are processed again: results are there twice, and sums too high",
            "set processing_guarantee=exactly_once_v2, in one rolling restart",
        )


def check_commit_interval(config: StreamsConfig) -> Iterator[DoctorFinding]:
    """Compare the commit interval with the time-out of the transactions that it ends."""
    if not config.exactly_once:
        return
    interval_ms, timeout_ms = config.commit_every_ms, config.transaction_timeout_ms
    figures = f"commit_interval_ms={interval_ms}, transaction_timeout_ms={timeout_ms}"
    if interval_ms * _COMMITS_PER_TIMEOUT > timeout_ms:
        yield create_warning_finding(
            TRANSACTION_TIMEOUT,
            figures,
            "a slow commit is aborted by the coordinator, and its records are processed again",
            f"set transaction_timeout_ms={int(interval_ms * _COMMITS_PER_TIMEOUT) + 1} or more, or "
            "commit more often",
        )
    else:
        yield create_fine_finding(TRANSACTION_TIMEOUT, figures)


def check_broker_limits(config: StreamsConfig, brokers: BrokerSettings) -> Iterator[DoctorFinding]:
    """Compare the application's time-outs with what each broker allows."""
    limit_ms = find_lowest_setting(brokers, _MAX_TIMEOUT)
    timeout_ms = config.transaction_timeout_ms
    if config.exactly_once and limit_ms is not None and timeout_ms > limit_ms:
        yield create_error_finding(
            TRANSACTION_TIMEOUT,
            f"transaction_timeout_ms={timeout_ms}, and a broker allows {_MAX_TIMEOUT}={limit_ms}",
            "the producer is refused (INVALID_TRANSACTION_TIMEOUT), and the application ends",
            f"set transaction_timeout_ms={limit_ms} or less, or "
            + _advise_broker_setting(_MAX_TIMEOUT, timeout_ms),
        )
    least = max(
        (int(each[_SESSION_LIMITS[0]]) for each in _select_brokers_with(brokers, _SESSION_LIMITS)),
        default=0,
    )
    most = find_lowest_setting(brokers, _SESSION_LIMITS[1])
    session_ms = config.session_timeout_ms
    if session_ms < least or (most is not None and session_ms > most):
        yield create_error_finding(
            SESSION_TIMEOUT,
            f"session_timeout_ms={session_ms}, and the brokers allow {least} to {most}",
            "members can't join the group (INVALID_SESSION_TIMEOUT)",
            f"set session_timeout_ms between {least} and {most}",
        )
    else:
        yield create_fine_finding(
            SESSION_TIMEOUT,
            f"session_timeout_ms={session_ms}, max_poll_interval_ms={config.max_poll_interval_ms}",
        )


def check_retention(brokers: BrokerSettings) -> Iterator[DoctorFinding]:
    """Find brokers that forget offsets, or transactional ids, while an application is stopped."""
    minutes = find_lowest_setting(brokers, _OFFSET_RETENTION)
    expiration_ms = find_lowest_setting(brokers, _ID_EXPIRATION)
    is_fine = True
    if minutes is not None and minutes * _MS_PER_MINUTE < _RETENTION_WISE_MS:
        is_fine = False
        yield create_warning_finding(
            OFFSET_RETENTION,
            f"{_OFFSET_RETENTION}={minutes}",
            f"an application that is stopped for {minutes} minutes loses its offsets: it refuses "
            "to start, or without state begins as auto_offset_reset says",
            _advise_broker_setting(_OFFSET_RETENTION, _RETENTION_WISE_MS // _MS_PER_MINUTE),
        )
    if expiration_ms is not None and expiration_ms < _RETENTION_WISE_MS:
        is_fine = False
        yield create_warning_finding(
            OFFSET_RETENTION,
            f"{_ID_EXPIRATION}={expiration_ms}",
            "a producer that writes nothing for so long is unknown then, and is not fenced if "
            "it comes back",
            _advise_broker_setting(_ID_EXPIRATION, _RETENTION_WISE_MS),
        )
    if is_fine and minutes is not None:
        yield create_fine_finding(
            OFFSET_RETENTION, f"{_OFFSET_RETENTION}={minutes}, {_ID_EXPIRATION}={expiration_ms}"
        )


def _select_brokers_with(
    brokers: BrokerSettings, names: tuple[str, ...]
) -> Iterator[Mapping[str, str]]:
    """Yield the settings of the brokers that tell all of these."""
    return (each for each in brokers.values() if all(name in each for name in names))


def find_lowest_setting(brokers: BrokerSettings, name: str) -> int | None:
    """Return the least value of a setting over the brokers; None if none tells it."""
    return min((int(each[name]) for each in _select_brokers_with(brokers, (name,))), default=None)


def _advise_broker_setting(name: str, value: int) -> str:
    """Return how a setting of the brokers is changed, which needs their restart."""
    shown = format_kafka_command(
        "kafka-configs.sh", "--describe", "--entity-type", "brokers", "--all"
    )
    return f"set {name}={value} in the brokers' server.properties ({shown} shows what is in force)"
