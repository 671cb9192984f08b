"""Tell for `millrace plan` whether the streams group that is on the brokers takes this version.

A streams group keeps the topology with which it was formed, members or not. Other topics are not
all that makes another one: `topic_defaults`, `replication_factor` and `cut_retention_ms` change
what is sent of internal topics.
"""

from __future__ import annotations

from typing import NamedTuple

from streams.commands.cluster_clients import ClusterClients
from streams.errors import ConfigError, StreamsError
from streams.membership.application_group import fetch_group_description
from streams.membership.connection import ConnectionLost
from streams.membership.streams.topology_differences import find_topology_differences
from streams.processes.group_protocol_choice import find_group_protocol
from streams.runtime.assigning.topology_to_send import describe_topology_to_send
from streams.settings.config import StreamsConfig
from streams.topology.build import Topology
from streams.topology.declared import declare_topology
from streams.topology.description import describe_topology

WAY_BY_CLASSIC = (
    "end all workers of the old version, start one of the new version with "
    "group_protocol='classic', which keeps the offsets, end it once it is RUNNING, and start all "
    "with group_protocol='streams' (docs/upgrading.md)"
)
"""The remedy for a group whose topology is another one."""


class StreamsGroupReview(NamedTuple):
    """Says in what the topology of a streams group differs from this version's, if in anything.

    `unknown` is why that could not be found, `protocol_refusal` why a start could not join by the
    protocol that the settings say.
    """

    differences: tuple[str, ...] = ()
    unknown: str = ""
    protocol_refusal: str = ""

    @property
    def refusal(self) -> str:
        """Return why a start is refused; empty if it is not."""
        if not self.differences:
            return self.protocol_refusal
        clauses = "; ".join(self.differences)
        return (
            "the streams group of this application was formed with another topology, which it "
            f"keeps, also while it has no members: {clauses} (see MR-033)"
        )

    def list_lines(self) -> list[str]:
        """Return the lines that say so."""
        if self.unknown:
            return [f"whether a streams group takes this version is not known: {self.unknown}"]
        if not self.refusal:
            return []
        remedies = [f"  remedy: {WAY_BY_CLASSIC}"] if self.differences else []
        return [f"refused: a start ends with this: {self.refusal}", *remedies]


def review_streams_group(
    topology: Topology, config: StreamsConfig, clients: ClusterClients
) -> StreamsGroupReview:
    """Compare the topology of an application's streams group with what this version would send.

    There is nothing to say where a start would join by the classic protocol, or no streams group is
    there.
    """
    application_id = topology.application_id
    try:
        chosen = clients.ask_brokers(
            lambda open_connection: find_group_protocol(config, topology, open_connection)
        )
        if chosen.protocol == "classic":
            return StreamsGroupReview()
        description = clients.ask_brokers(
            lambda open_connection: fetch_group_description(open_connection, application_id)
        )
    except (ConnectionLost, StreamsError) as error:
        return StreamsGroupReview(unknown=str(error))
    except ConfigError as error:
        return StreamsGroupReview(protocol_refusal=str(error))
    if description is None or description.streams is None:
        return StreamsGroupReview()
    declared = declare_topology(describe_topology(topology))
    sent = describe_topology_to_send(topology, declared, config)
    return StreamsGroupReview(find_topology_differences(description.streams.topology, sent))
