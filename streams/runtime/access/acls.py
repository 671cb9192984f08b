"""Derive the least rights that an application needs on a cluster with an authorizer, as ACLs.

    resource           rights                       the requests that need them
    inputs             Read                         Fetch, OffsetCommit, TxnOffsetCommit
      by a pattern     Read, by the prefix of all   the same; Metadata leaves out silently what may
                       names, or on all topics      not be described
    global tables      Read, DescribeConfigs        Fetch; DescribeConfigs, for how long tombstones
                                                    are kept
    outputs, dead      Write                        AddPartitionsToTxn, Produce
      letters
    changelogs         Create, Read, Write,         CreateTopics; Fetch in a restore; Produce;
                       DescribeConfigs,             DescribeConfigs as above, and to check
                       AlterConfigs                 settings; IncrementalAlterConfigs
      of windows       Delete as well               DeleteRecords of what has expired
    repartition        Create, Read, Write, Delete, as above; DeleteRecords by the purge
                       DescribeConfigs,
                       AlterConfigs
    the ledger         Create, Write,               CreateTopics, Produce; settings as above
                       DescribeConfigs,
                       AlterConfigs
    the group          Read                         JoinGroup, SyncGroup, Heartbeat, LeaveGroup,
                                                    OffsetCommit, AddOffsetsToTxn, TxnOffsetCommit
      of the streams   DescribeConfigs as well      DescribeConfigs, for its session time-out
      protocol
    groups of cuts     Describe, by their prefix    ListGroups, which leaves out silently what may
                                                    not be described, and OffsetFetch of the purge
    transactional ids  Write, by their prefix       InitProducerId, AddPartitionsToTxn, Produce,
                                                    AddOffsetsToTxn, TxnOffsetCommit, EndTxn
    the cluster        IdempotentWrite              InitProducerId without a transactional id

Read, Write, Delete and Alter imply Describe, which is not listed. So Metadata, ListOffsets,
OffsetForLeaderEpoch, OffsetFetch, FindCoordinator and DescribeTransactions are in none of the rows:
they need Describe. AlterConfigs implies DescribeConfigs; both are listed, since an administrator
may leave out the first one: then an application refuses to start while settings of an internal
topic would lose records.

Names are literal where they are known beforehand. Transactional ids contain the id of a process,
and groups of cuts any name, so these have prefixes. Source: Kafka's "Operations and Resources on
Protocols", KIP-290 (prefixes, Create on topics), KIP-679 (IdempotentWrite).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from streams.graph.nodes import StoreKind
from streams.ledger import ledger_topic
from streams.runtime.access.resource_names import (
    cut_group_prefix,
    transactional_id_prefix,
)
from streams.settings.config import StreamsConfig
from streams.settings.exception_handlers import Stage
from streams.settings.guarantees import PRODUCER_PER_TASK
from streams.topology.build import Topology

CLUSTER_NAME = "kafka-cluster"
"""The name of the one resource of type Cluster."""
WRITE_IS_ENOUGH_SINCE = (2, 8)
"""The version of Kafka from which on Write on any topic allows an idempotent producer (KIP-679)."""
_PREFIX_MARK = "*"
_ALL_TOPICS = "*"
"""The name that stands for all topics in a literal ACL, in Kafka too."""
_EXPIRING_KINDS = {StoreKind.WINDOW, StoreKind.SESSION, StoreKind.VERSIONED}
"""The kinds of stores whose changelogs lose what has expired, by DeleteRecords."""


class AclResource(StrEnum):
    """Names the types of resources to which ACLs apply, in the order in which they are listed.

    The values are the options of `kafka-acls.sh`.
    """

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional-id"
    CLUSTER = "cluster"


class PatternType(StrEnum):
    """Names how the name of an ACL is compared with that of a resource (KIP-290)."""

    LITERAL = "literal"
    PREFIXED = "prefixed"


class AclOperation(StrEnum):
    """Names the operations that ACLs allow, in the order in which they are listed."""

    READ = "Read"
    WRITE = "Write"
    CREATE = "Create"
    DELETE = "Delete"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"
    ALTER_CONFIGS = "AlterConfigs"
    IDEMPOTENT_WRITE = "IdempotentWrite"


@dataclass(frozen=True, slots=True)
class Acl:
    """Represents the right to one operation on the resources of one name or prefix.

    `purposes` say what the application does with it: `input`, `changelog`.
    """

    resource_type: AclResource
    name: str
    operation: AclOperation
    pattern: PatternType = PatternType.LITERAL
    purposes: tuple[str, ...] = ()


class AclList:
    """Collects ACLs, each once with all of its purposes."""

    def __init__(self) -> None:
        self._purposes: dict[Acl, dict[str, None]] = {}

    def allow_operations(
        self,
        resource_type: AclResource,
        name: str,
        *operations: AclOperation,
        purpose: str,
        pattern: PatternType = PatternType.LITERAL,
    ) -> None:
        """Add the right to each of `operations`, or its purpose if the right was added before."""
        for operation in operations:
            acl = Acl(resource_type, name, operation, pattern)
            self._purposes.setdefault(acl, {})[purpose] = None

    def allow_chosen_topics(self, topics: Iterable[str], *operations: AclOperation) -> None:
        """Add the rights on topics that functions choose; one that ends with `*` is a prefix."""
        for topic in topics:
            prefix = topic.removesuffix(_PREFIX_MARK)
            # The name * alone stands for all topics, in Kafka too.
            is_prefix = prefix not in (topic, "")
            self.allow_operations(
                AclResource.TOPIC,
                prefix if is_prefix else topic,
                *operations,
                purpose="chosen by a function",
                pattern=PatternType.PREFIXED if is_prefix else PatternType.LITERAL,
            )

    def list_acls(self) -> list[Acl]:
        """Return the ACLs by type, pattern, name and operation."""
        types, operations = list(AclResource), list(AclOperation)
        ordered = sorted(
            self._purposes,
            key=lambda acl: (
                types.index(acl.resource_type),
                acl.pattern,
                acl.name,
                operations.index(acl.operation),
            ),
        )
        return [
            Acl(acl.resource_type, acl.name, acl.operation, acl.pattern, (*self._purposes[acl],))
            for acl in ordered
        ]


def derive_acls(
    topology: Topology,
    config: StreamsConfig,
    *,
    kafka_version: tuple[int, ...] = WRITE_IS_ENOUGH_SINCE,
    chosen_topics: Collection[str] = (),
) -> list[Acl]:
    """Return the ACLs that an application needs.

    None implies another, but for AlterConfigs: it is needed only where settings would lose records.

    `chosen_topics`: the topics that functions of the application choose, which can't be known from
    the topology; one that ends with `*` is a prefix.
    """
    acls = AclList()
    _add_topic_rights(acls, topology, config)
    acls.allow_chosen_topics(chosen_topics, AclOperation.WRITE)
    _add_group_rights(acls, topology, config)
    if config.exactly_once:
        acls.allow_operations(
            AclResource.TRANSACTIONAL_ID,
            transactional_id_prefix(topology.application_id, config.processing_guarantee),
            AclOperation.WRITE,
            purpose=f"a producer for each {_describe_producer_owner(config)}",
            pattern=PatternType.PREFIXED,
        )
    writes = any(acl.operation is AclOperation.WRITE for acl in acls.list_acls())
    if not config.exactly_once and not (writes and kafka_version >= WRITE_IS_ENOUGH_SINCE):
        acls.allow_operations(
            AclResource.CLUSTER,
            CLUSTER_NAME,
            AclOperation.IDEMPOTENT_WRITE,
            purpose="idempotent producers",
        )
    return acls.list_acls()


def list_topic_reads_and_writes(acls: Iterable[Acl]) -> dict[str, list[AclOperation]]:
    """Return Read and Write, as far as they are among `acls`, by each topic that is named there."""
    operations: dict[str, list[AclOperation]] = {}
    for acl in acls:
        is_topic = acl.resource_type is AclResource.TOPIC and acl.pattern is PatternType.LITERAL
        if (
            is_topic
            and acl.name != _ALL_TOPICS
            and acl.operation in (AclOperation.READ, AclOperation.WRITE)
        ):
            operations.setdefault(acl.name, []).append(acl.operation)
    return operations


def find_topic_choosers(topology: Topology, config: StreamsConfig) -> list[str]:
    """Describe the steps and handlers that choose their topics at run time.

    Their topics can't be known from the topology, so ACLs for them are missing.
    """
    steps = [
        f"step {sink.name!r}"
        for sub in topology.subtopologies
        for sink in sub.sinks
        if not isinstance(sink.topic, str)
    ]
    handlers = [
        f"the {stage.value} handler"
        for stage in Stage
        if callable(config.handlers.handler_of(stage))
    ]
    return steps + handlers


def _describe_producer_owner(config: StreamsConfig) -> str:
    """Return the text `task` or `stream thread`, whichever has a producer of its own."""
    return "task" if config.processing_guarantee == PRODUCER_PER_TASK else "stream thread"


def _add_topic_rights(acls: AclList, topology: Topology, config: StreamsConfig) -> None:
    """Add the rights on topics whose names are known from the topology and the settings."""
    topic, do = AclResource.TOPIC, AclOperation
    for name in topology.input_topics:
        acls.allow_operations(topic, name, do.READ, purpose="input")
    for pattern in topology.patterns:
        acls.allow_operations(
            topic,
            pattern.prefix or _ALL_TOPICS,
            do.READ,
            purpose="input by a pattern",
            pattern=PatternType.PREFIXED if pattern.prefix else PatternType.LITERAL,
        )
    for table in topology.global_tables:
        acls.allow_operations(
            topic, table.topic, do.READ, do.DESCRIBE_CONFIGS, purpose="global table"
        )
    for name in _list_output_topics(topology):
        acls.allow_operations(topic, name, do.WRITE, purpose="output")
    for name in config.handlers.dead_letter_topics():
        acls.allow_operations(topic, name, do.WRITE, purpose="dead letters")
    for name in topology.repartition_topics:
        acls.allow_operations(
            topic, name, do.READ, do.WRITE, do.CREATE, do.DELETE, purpose="repartition"
        )
        _add_settings_rights(acls, name, "repartition")
    for spec in (s for sub in topology.subtopologies for s in sub.stores if s.logged):
        name = topology.restore_topic_of(spec.name)
        if spec.source_topic is not None:
            acls.allow_operations(topic, name, do.DESCRIBE_CONFIGS, purpose="changelog")
        else:
            acls.allow_operations(topic, name, do.READ, do.WRITE, do.CREATE, purpose="changelog")
            _add_settings_rights(acls, name, "changelog")
            if spec.kind in _EXPIRING_KINDS:
                acls.allow_operations(topic, name, do.DELETE, purpose="changelog")
    if config.ledger:
        name = ledger_topic(topology.application_id)
        acls.allow_operations(topic, name, do.WRITE, do.CREATE, purpose="ledger")
        _add_settings_rights(acls, name, "ledger")


def _add_settings_rights(acls: AclList, internal_topic: str, purpose: str) -> None:
    """Add the rights to check the settings of an internal topic, and to mend them."""
    operations = (AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)
    acls.allow_operations(AclResource.TOPIC, internal_topic, *operations, purpose=purpose)


def _list_output_topics(topology: Topology) -> Iterator[str]:
    """Yield the topics that sinks write, without internal topics and those that are chosen."""
    sinks: Iterable[object] = (
        sink.topic for sub in topology.subtopologies for sink in sub.sinks if not sink.internal
    )
    yield from (topic for topic in sinks if isinstance(topic, str))


def _add_group_rights(acls: AclList, topology: Topology, config: StreamsConfig) -> None:
    """Add the rights on the application's group, and on groups that keep its cuts."""
    group, application_id = AclResource.GROUP, topology.application_id
    acls.allow_operations(group, application_id, AclOperation.READ, purpose="membership, offsets")
    if config.group_protocol != "classic":
        acls.allow_operations(
            group, application_id, AclOperation.DESCRIBE_CONFIGS, purpose="the session time-out"
        )
    kinds = {spec.kind for sub in topology.subtopologies for spec in sub.stores if spec.logged}
    if topology.repartition_topics or kinds & _EXPIRING_KINDS:
        acls.allow_operations(
            group,
            cut_group_prefix(application_id),
            AclOperation.DESCRIBE,
            purpose="cuts, which the purge spares",
            pattern=PatternType.PREFIXED,
        )
