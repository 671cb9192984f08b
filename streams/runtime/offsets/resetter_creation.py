"""Create the resetter of a thread, with the policies of its topology's sources and settings."""

from __future__ import annotations

from streams.common.host import Host
from streams.runtime.clients.interfaces import AdminClient
from streams.runtime.offsets.offset_reset import OffsetResetter
from streams.settings.config import StreamsConfig
from streams.topology.build import Topology
from streams.topology.initial_policies import find_initial_policies


def create_offset_resetter(
    topology: Topology,
    config: StreamsConfig,
    admin: AdminClient,
    host: Host,
    *,
    needs_offsets: bool = True,
) -> OffsetResetter:
    """Return a resetter of the topology's inputs, by each source's policy or the settings'.

    Without `needs_offsets` an input with the policy `none` begins at its first record: in a
    test driver, where nobody could have committed an offset before.
    """
    policies = find_initial_policies(topology, config)
    return OffsetResetter(
        admin,
        host,
        initial_policies=policies if needs_offsets else policies.replace_none_by_earliest(),
        offset_out_of_range=config.offset_out_of_range,
        internal_topics=topology.repartition_topics,
        patterns=topology.patterns,
    )
