"""What checkers of groups share: the world of groups, and the requests that they listen to."""

from __future__ import annotations

from tests.simulation.checkers.checker import Checker
from tests.simulation.groups.world import GroupWorld

OFFSET_COMMIT, OFFSET_FETCH = 8, 9
JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 11, 12, 13, 14
CONSUMER_GROUP_HEARTBEAT = 68


class GroupChecker(Checker):
    world: GroupWorld
