"""Test what is kept of the members' endpoints between two answers of a group."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from coordinator.groups.streams.endpoints import EndpointCache
from coordinator.groups.streams.state import StreamsGroup, StreamsGroupMember

NO_TASKS: Any = SimpleNamespace(subtopologies={})
TOPICS: Any = SimpleNamespace(version=1)


def create_member(member_id: str) -> StreamsGroupMember:
    return StreamsGroupMember(member_id, endpoint=(member_id, 1))


def list_hosts(cache: EndpointCache, members: str, updated: str) -> list[str]:
    """Return the hosts that a member is told of whose heartbeat is answered now."""
    group = SimpleNamespace(members={each: MEMBERS[each] for each in members})
    told = cache.list_endpoints(
        cast("StreamsGroup", group), MEMBERS[updated], None, NO_TASKS, TOPICS
    )
    return [each.endpoint[0] for each in told]


MEMBERS = {each: create_member(each) for each in "abcd"}


def test_a_member_that_comes_back_takes_nobodys_place() -> None:
    cache = EndpointCache()
    assert list_hosts(cache, "abc", updated="b") == ["a", "c", "b"]
    assert list_hosts(cache, "abc", updated="d") == ["a", "b", "c", "d"]
    assert list_hosts(cache, "bcd", updated="b") == ["c", "d", "b"]
    assert list_hosts(cache, "bcd", updated="a") == ["b", "c", "d", "a"]
