"""Derive the least rights with which Spark reads an application: cuts, exports, reconciliation.

    resource                       rights                 the requests that need them
    inputs, outputs, repartition   Read, DescribeConfigs  Fetch, ListOffsets; DescribeConfigs, for
      topics, changelogs, topics                          what removes a topic's records
      of global tables
    the ledger                     Read                   Fetch, ListOffsets
    the application's group        Describe               FindCoordinator, OffsetFetch
    the readers' group             Describe               FindCoordinator of their consumers

Nothing is written to Kafka. The sink for Spark's own results (`streams.spark.sink`) is no part of
an application, and not in this list.
"""

from __future__ import annotations

from collections.abc import Collection

from streams.ledger import ledger_topic
from streams.runtime.access.acls import Acl, AclList, AclOperation, AclResource
from streams.settings.config import StreamsConfig
from streams.spark.source.broker_access import CLIENT_ID
from streams.topology.build import Topology

_READ_TOPIC = (AclOperation.READ, AclOperation.DESCRIBE_CONFIGS)


def derive_reader_acls(
    topology: Topology, config: StreamsConfig, *, chosen_topics: Collection[str] = ()
) -> list[Acl]:
    """Return the ACLs that Spark needs to take cuts of an application, and export or check it.

    The user of these need not be the application's. `chosen_topics`: as for `derive_acls`.
    """
    acls = AclList()
    topic, group = AclResource.TOPIC, AclResource.GROUP
    purposes = dict.fromkeys(topology.input_topics, "input")
    purposes |= {table.topic: "global table" for table in topology.global_tables}
    for sub in topology.subtopologies:
        purposes |= {
            sink.topic: "repartition" if sink.internal else "output"
            for sink in sub.sinks
            if isinstance(sink.topic, str)
        }
        purposes |= {
            topology.restore_topic_of(spec.name): "changelog"
            for spec in sub.stores
            if spec.logged and spec.source_topic is None
        }
    purposes |= dict.fromkeys(config.handlers.dead_letter_topics(), "dead letters")
    for name, purpose in purposes.items():
        acls.allow_operations(topic, name, *_READ_TOPIC, purpose=purpose)
    acls.allow_chosen_topics(chosen_topics, *_READ_TOPIC)
    if config.ledger:
        name = ledger_topic(topology.application_id)
        acls.allow_operations(topic, name, AclOperation.READ, purpose="ledger")
    acls.allow_operations(
        group, topology.application_id, AclOperation.DESCRIBE, purpose="committed offsets"
    )
    acls.allow_operations(group, CLIENT_ID, AclOperation.DESCRIBE, purpose="consumers of Spark")
    return acls.list_acls()
