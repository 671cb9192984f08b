"""Decide which of Kafka's settings that this broker does not have are ignored, or refused.

The settings of a container's Kafka are those of a cluster: replication factors, listeners, threads.
What one broker of plain text does anyway is accepted, and has no effect. What it can't do is
refused, with the reason: an application would count on it. Other names are nobody's, and refused.
Source: DescribeConfigs of a node of Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

_SECURITY_PREFIXES = ("sasl.", "ssl.")
_NOT_SECURE = "this broker has plain text only, without TLS, SASL and authorization"
_NO_JAVA = "this broker runs no Java, so it can't load a class"


def is_unused_setting(name: str) -> bool:
    """Return whether Kafka has a setting of this name that this broker does not have."""
    return name in UNUSED_SETTINGS or name.startswith(_SECURITY_PREFIXES)


def explain_unsupported_value(name: str, value: str) -> str | None:
    """Return why an unused setting can't have a value; None if it may."""
    if name.startswith(_SECURITY_PREFIXES):
        return _explain_unless_allowed(("", "none"), _NOT_SECURE, value.strip())
    check = _CHECKED.get(name)
    return None if check is None else check(value.strip())


def _explain_unless_one(value: str) -> str | None:
    return None if value == "1" else "must be 1: this broker is the only one, with the only replica"


def _explain_unless_allowed(allowed: tuple[str, ...], reason: str, value: str) -> str | None:
    if value.lower() in allowed:
        return None
    return f"must be {' or '.join(each or 'empty' for each in allowed)}: {reason}"


def _explain_wrong_listeners(value: str) -> str | None:
    """Object to a listener that is not of plain text: `PLAINTEXT://:9092,LAN://kafka:29092` is."""
    for listener in value.split(","):
        objection = _explain_unsupported_protocol(listener.partition("://")[0])
        if objection is not None:
            return objection
    return None


def _explain_unsupported_map(value: str) -> str | None:
    """Object to a protocol that is not plain text: all of `LAN:PLAINTEXT,CONTROLLER:PLAINTEXT`."""
    for pair in value.split(","):
        objection = _explain_unsupported_protocol(pair.rpartition(":")[2])
        if objection is not None:
            return objection
    return None


def _explain_unsupported_protocol(protocol: str) -> str | None:
    if protocol.strip().upper() in ("SSL", "SASL_PLAINTEXT", "SASL_SSL"):
        return f"{protocol.strip()} can't be had: {_NOT_SECURE}"
    return None


def _split_names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CHECKED: dict[str, Callable[[str], str | None]] = {
    **dict.fromkeys(
        (
            "min.insync.replicas",
            "offsets.topic.replication.factor",
            "share.coordinator.state.topic.min.isr",
            "share.coordinator.state.topic.replication.factor",
            "transaction.state.log.min.isr",
            "transaction.state.log.replication.factor",
        ),
        _explain_unless_one,
    ),
    "listeners": _explain_wrong_listeners,
    "advertised.listeners": _explain_wrong_listeners,
    "listener.security.protocol.map": _explain_unsupported_map,
    "security.inter.broker.protocol": _explain_unsupported_protocol,
}

# Settings that may only say what is so anyway: the values, in lower case, and the reason.
_ONLY: Mapping[str, tuple[tuple[str, ...], str]] = {
    "alter.config.policy.class.name": (("",), _NO_JAVA),
    "authorizer.class.name": (("",), _NOT_SECURE),
    "client.quota.callback.class": (("",), _NO_JAVA),
    "compression.type": (("producer",), "topics keep what producers send"),
    "config.providers": (("",), _NO_JAVA),
    "connections.max.reauth.ms": (("0",), _NOT_SECURE),
    "create.topic.policy.class.name": (("",), _NO_JAVA),
    "delegation.token.secret.key": (("",), _NOT_SECURE),
    "group.streams.topology.description.plugin.class": (("",), _NO_JAVA),
    "max.connection.creation.rate": (
        ("2147483647",),
        "this broker limits the number of connections (max.connections), not their rate",
    ),
    "max.connections.per.ip.overrides": (
        ("",),
        "this broker has one limit for all addresses (max.connections.per.ip)",
    ),
    "max.decompressed.message.bytes": (
        ("2147483639",),
        "this broker does not look into compressed batches: message.max.bytes limits their size",
    ),
    "remote.log.storage.system.enable": (("false",), "this broker has no tiered storage"),
    "security.providers": (("",), _NOT_SECURE),
    "transaction.two.phase.commit.enable": (("false",), "this broker has no two-phase commit"),
}
_CHECKED |= {name: partial(_explain_unless_allowed, *rule) for name, rule in _ONLY.items()}

# Settings of other brokers, controllers, threads, tiered storage, and kinds of groups that aren't
# here. Any value is accepted.
_WITHOUT_EFFECT = _split_names(
    """
    add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
    alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds
    auto.leader.rebalance.enable background.threads broker.heartbeat.interval.ms broker.rack
    broker.session.timeout.ms compression.gzip.level compression.lz4.level compression.zstd.level
    connection.failed.authentication.delay.ms controlled.shutdown.enable controller.listener.names
    controller.quorum.append.linger.ms controller.quorum.auto.join.enable
    controller.quorum.bootstrap.servers controller.quorum.election.backoff.max.ms
    controller.quorum.election.timeout.ms controller.quorum.fetch.max.bytes
    controller.quorum.fetch.snapshot.max.bytes controller.quorum.fetch.timeout.ms
    controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms controller.quorum.voters
    controller.quota.window.num controller.quota.window.size.seconds controller.socket.timeout.ms
    cordoned.log.dirs delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms
    delegation.token.max.lifetime.ms delete.records.purgatory.purge.interval.requests
    early.start.listeners errors.deadletterqueue.auto.create.topics.enable
    errors.deadletterqueue.topic.name.prefix fetch.purgatory.purge.interval.requests
    follower.fetch.last.tiered.offset.enable group.coordinator.append.linger.ms
    group.coordinator.background.threads group.coordinator.cached.buffer.max.bytes
    group.coordinator.threads group.share.assignment.interval.ms group.share.assignors
    group.share.delivery.count.limit group.share.heartbeat.interval.ms
    group.share.max.assignment.interval.ms group.share.max.delivery.count.limit
    group.share.max.heartbeat.interval.ms group.share.max.partition.max.record.locks
    group.share.max.record.lock.duration.ms group.share.max.session.timeout.ms
    group.share.max.share.sessions group.share.max.size group.share.min.assignment.interval.ms
    group.share.min.delivery.count.limit group.share.min.heartbeat.interval.ms
    group.share.min.partition.max.record.locks group.share.min.record.lock.duration.ms
    group.share.min.session.timeout.ms group.share.partition.max.record.locks
    group.share.record.lock.duration.ms group.share.session.timeout.ms
    group.streams.assignors group.streams.rack.aware.assignment.tags
    initial.broker.registration.timeout.ms inter.broker.listener.name
    kafka.metrics.polling.interval.secs kafka.metrics.reporters
    leader.imbalance.check.interval.seconds log.cleaner.io.buffer.load.factor
    log.cleaner.io.buffer.size log.cleaner.io.max.bytes.per.second log.cleaner.threads log.dir
    log.dir.failure.timeout.ms log.dirs log.flush.scheduler.interval.ms
    log.flush.start.offset.checkpoint.interval.ms log.local.retention.bytes log.local.retention.ms
    log.preallocate log.remote.copy.lag.bytes log.remote.copy.lag.ms
    max.request.partition.size.limit metadata.log.dir
    metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms
    metadata.log.segment.bytes metadata.log.segment.ms metadata.max.idle.interval.ms
    metadata.max.retention.bytes metadata.max.retention.ms metric.reporters metrics.num.samples
    metrics.recording.level metrics.sample.window.ms num.io.threads num.network.threads
    num.recovery.threads.per.data.dir num.replica.alter.log.dirs.threads num.replica.fetchers
    offsets.commit.timeout.ms offsets.load.buffer.size offsets.topic.compression.codec
    offsets.topic.segment.bytes principal.builder.class process.roles
    producer.purgatory.purge.interval.requests quota.window.num quota.window.size.seconds
    remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms
    remote.log.index.file.cache.total.size.bytes remote.log.manager.copier.thread.pool.size
    remote.log.manager.copy.max.bytes.per.second remote.log.manager.copy.quota.window.num
    remote.log.manager.copy.quota.window.size.seconds remote.log.manager.expiration.thread.pool.size
    remote.log.manager.fetch.max.bytes.per.second remote.log.manager.fetch.quota.window.num
    remote.log.manager.fetch.quota.window.size.seconds remote.log.manager.follower.thread.pool.size
    remote.log.manager.task.interval.ms remote.log.manager.thread.pool.size
    remote.log.metadata.custom.metadata.max.bytes remote.log.metadata.manager.class.name
    remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
    remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks
    remote.log.reader.threads remote.log.storage.manager.class.name
    remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix
    replica.fetch.backoff.ms replica.fetch.max.bytes replica.fetch.min.bytes
    replica.fetch.response.max.bytes replica.fetch.wait.max.ms
    replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms replica.selector.class
    replica.socket.receive.buffer.bytes replica.socket.timeout.ms replication.quota.window.num
    replication.quota.window.size.seconds request.timeout.ms share.coordinator.append.linger.ms
    share.coordinator.cached.buffer.max.bytes share.coordinator.load.buffer.size
    share.coordinator.snapshot.update.records.per.snapshot
    share.coordinator.state.topic.compression.codec share.coordinator.state.topic.num.partitions
    share.coordinator.state.topic.segment.bytes share.coordinator.threads
    share.coordinator.write.timeout.ms share.fetch.purgatory.purge.interval.requests
    socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
    socket.listen.backlog.size socket.receive.buffer.bytes socket.send.buffer.bytes
    telemetry.max.bytes transaction.partition.verification.enable
    transaction.state.log.load.buffer.size transaction.state.log.segment.bytes
    unclean.leader.election.enable
    """
)
UNUSED_SETTINGS = _WITHOUT_EFFECT | _CHECKED.keys()
