"""Find the applications of a cluster by its groups."""

from __future__ import annotations

from collections.abc import Sequence

from streams.doctor.cluster_facts import ClusterFacts
from streams.membership.application_group import STREAMS, fetch_group_description
from streams.membership.group_description import GroupDescription
from streams.membership.group_offsets import fetch_group_offsets
from streams.membership.protocol import decode_subscription
from streams.runtime.access.resource_names import is_cut_group
from streams.runtime.offsets.offset_metadata import has_changelog_positions

_CLASSIC, _STABLE, _PROTOCOL = "classic", "Stable", "stream"


def find_applications(cluster: ClusterFacts) -> list[str]:
    """Return the ids of the cluster's applications, those without workers included.

    Groups of Kafka Streams' applications, of consumers, and of cuts are left out.
    """
    groups = [each.group for each in cluster.groups() if each.protocol in (_CLASSIC, STREAMS)]
    return [name for name in exclude_cut_groups(groups) if _is_application(cluster, name)]


def exclude_cut_groups(groups: Sequence[str]) -> list[str]:
    """Return the groups that keep no cut of another one of them."""
    return [
        name
        for name in groups
        if not any(each != name and is_cut_group(name, each) for each in groups)
    ]


def _is_application(cluster: ClusterFacts, name: str) -> bool:
    """Return whether a group is of an application: by its members, or else by its offsets."""
    clients = cluster.clients()
    described = clients.ask_brokers(lambda connect: fetch_group_description(connect, name))
    if described is None:
        return False
    if described.members and described.streams is None:
        return _has_members_of_millrace(described)
    offsets = clients.ask_brokers(
        lambda connect: fetch_group_offsets(connect, name, None, require_stable=False)
    ).offsets
    return any(has_changelog_positions(held.metadata) for held in offsets.values())


def _has_members_of_millrace(group: GroupDescription) -> bool:
    """Return whether members of a group speak Millrace's protocol, as far as they can be read.

    In a rebalance brokers don't tell what members have said: then the protocol's name decides.
    """
    if group.state != _STABLE:
        return group.protocol in (_PROTOCOL, "")
    if group.protocol != _PROTOCOL:
        return False
    try:
        for each in group.members:
            decode_subscription(each.subscription)
    except ValueError:
        return False
    return True
