"""Plant bugs in standby tasks, which the checker of stores must see."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from streams.runtime.changelogs.changelog import RestoreStart
from streams.runtime.restoring import followed_ranges
from streams.runtime.restoring.changelog_follower import ChangelogFollower
from streams.runtime.threads.standby_tasks import StandbyTasks
from tests.simulation.bugs import replaced
from tests.simulation.runtime.bugs import Planted
from tests.simulation.runtime.checkers import Stores
from tests.simulation.world import World


def standbys_followed_from_the_start(world: World) -> AbstractContextManager[None]:
    """Make a standby ignore the position that its store has."""

    def make(original: Any) -> Any:
        def find(store: str, checkpoint: Any, changelog: Any, **named: Any) -> RestoreStart:
            start: RestoreStart = original(store, checkpoint, changelog, **named)
            return start._replace(position=changelog.start_offset)

        return find

    return replaced(followed_ranges, "find_restore_start", make)


def standby_position_ahead_of_its_data(world: World) -> AbstractContextManager[None]:
    """Make a standby lose the last record of each batch, and count it."""

    def make(original: Any) -> Any:
        def load(self: ChangelogFollower[Any], followed: Any, messages: Any, at: int) -> None:
            original(self, followed, messages[:-1], at)

        return load

    return replaced(ChangelogFollower, "load_records", make)


def promotions_that_begin_with_nothing(world: World) -> AbstractContextManager[None]:
    """Make a promotion empty the stores of its standby, and restore them from scratch."""

    def make(original: Any) -> Any:
        def promote(self: StandbyTasks, active: Any) -> Any:
            promoted = original(self, active)
            self._restorer.run_between_batches(lambda: None)  # it gives them back
            for task in promoted.values():
                for logged in task.stores.logged.values():
                    logged.clear_store()
            return promoted

        return promote

    return replaced(StandbyTasks, "promote_tasks", make)


_STANDBYS = {"kind": "collect", "persistent": True, "standbys": 0.7, "unsteady": 0.5}
STANDBY_BUGS = (
    Planted(standbys_followed_from_the_start, (Stores,), "kills", _STANDBYS),
    Planted(standby_position_ahead_of_its_data, (Stores,), "kills", _STANDBYS),
    Planted(promotions_that_begin_with_nothing, (Stores,), "rebalances", _STANDBYS),
)
