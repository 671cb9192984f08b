"""Ask a broker about its groups and transactions, in a form that two brokers can agree on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from coordinator.errors import Code
from tests.conformance.calls import fetch_offsets
from tests.conformance.wire import Api, Client, plain

# Which call describes a group, by the type that ListGroups gives; each asked in this version.
DESCRIBE = {
    "classic": (Api.DESCRIBE_GROUPS, 5),
    "consumer": (Api.CONSUMER_GROUP_DESCRIBE, 1),
    "share": (Api.SHARE_GROUP_DESCRIBE, 1),
    "streams": (Api.STREAMS_GROUP_DESCRIBE, 0),
}


@dataclass
class Answers:
    """Holds answers by the name of the group or transactional id."""

    listed: dict[str, Any] = field(default_factory=dict)
    described: dict[str, Any] = field(default_factory=dict)
    offsets: dict[str, Any] = field(default_factory=dict)
    stable_offsets: dict[str, Any] = field(default_factory=dict)
    transactions: dict[str, Any] = field(default_factory=dict)


def ask(client: Client, groups: Iterable[str], transactional_ids: Iterable[str]) -> Answers:
    """Ask for each group that ListGroups knows, each with offsets, and each transaction."""
    found = Answers()
    wanted = tuple(groups)
    # First: real Kafka lists the groups of those coordinators only that have been loaded.
    for name in wanted:
        for offsets, stable in ((found.offsets, False), (found.stable_offsets, True)):
            answer = fetch_offsets(client, name, None, stable=stable)
            if answer.topics:
                offsets[name] = unordered(plain(answer))
    listed = client.send(Api.LIST_GROUPS, 5, states_filter=(), types_filter=())
    assert listed.error_code == Code.NONE, listed
    for each in listed.groups:
        if each.group_id in wanted:
            found.listed[each.group_id] = (
                each.group_type,
                each.group_state,
                each.protocol_type,
            )
    for name, (kind, *_) in sorted(found.listed.items()):
        asked: dict[str, Any] = {"groups" if kind == "classic" else "group_ids": [name]}
        [described] = client.send(*DESCRIBE[kind], **asked).groups
        found.described[name] = unordered(plain(described))
    for name in transactional_ids:
        asked_of = client.send(Api.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[name])
        found.transactions[name] = unordered(plain(asked_of.transaction_states[0]))
    return found


def unordered(value: Any) -> Any:
    """Return the same value with every list in one order."""
    if isinstance(value, dict):
        return {name: unordered(each) for name, each in value.items()}
    if isinstance(value, list):
        return sorted((unordered(each) for each in value), key=repr)
    return value
