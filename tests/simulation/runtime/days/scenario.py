"""Make a scenario in which days pass: an application idles, is stopped, moves to other machines.

The brokers' settings are the defaults: records, empty groups' offsets and transactional ids are
kept for 7 days, producer ids for one. Only their checks come sooner, within one `CHECKS_MS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, TypeAlias

from tests.simulation.runtime.days.changed_layout import KEPT_LONG, change_layout
from tests.simulation.runtime.days.steps import (
    Abort,
    AddPartition,
    DeleteChangelog,
    FillChangelog,
    Pass,
    Recreate,
    Replace,
    Rest,
    SetOffsets,
    SetTopic,
    StopAll,
    feed_some,
)
from tests.simulation.runtime.scenario import Kill, Start
from tests.simulation.runtime.topologies import CHANGELOG, INPUT, OTHER, TIMED
from tests.simulation.runtime.world import RuntimeSetting
from tests.simulation.steps import Scenario, Step
from tests.simulation.world import Setting

DAY_MS = 86_400_000
CHECKS_MS = 100
CHECKS = {
    "log_retention_check_interval_ms": CHECKS_MS,
    "offsets_retention_check_interval_ms": CHECKS_MS,
    "producer_id_expiration_check_interval_ms": CHECKS_MS,
    "transaction_remove_expired_transaction_cleanup_interval_ms": CHECKS_MS,
}
ROUNDS = 5
MOVED_MS = 6_500
"""After which a position that has moved over aborted records is committed."""
TABLES = ("copy", "count", "collect", "regroup")
KINDS = (*TABLES, "closing", "suppress")
OLD_TIMES = (*TIMED, "versioned")
"""The kinds whose records have times of their own, which may be days ago."""


DaysScenario: TypeAlias = Scenario[RuntimeSetting, Any]


def days_scenario(
    seed: int, story: str | None = None, *, aborts: bool = True, stands: bool = True, **given: Any
) -> DaysScenario:
    """Return the scenario of a seed, of several rounds, or one of `STORIES` by name.

    `aborts`: inputs have aborted records, too; `stands`: event time may stand while days pass.
    `given` are fields of the setting.
    """
    random = Random(f"{seed} days")
    chosen: dict[str, Any] = {
        "kind": random.choice(KINDS),
        "caching": random.random() < 0.5,
        "persistent": random.random() < 0.85,
        "workers": 2,
        "threads": random.choice((1, 1, 2)),
        "guarantee": random.choice(("exactly_once_v2",) * 3 + ("exactly_once",)),
        "commit_interval_ms": random.choice((20, 100)),
        "session_timeout_ms": 1_000,
        "preemption": 0.0,
        "standbys": random.choice((0.0, 0.0, 0.7)),
        "kept_ms": 300_000,
        "broker": CHECKS,
        **(SETTINGS_OF_STORIES.get(story, {}) if story else {}),
    }
    setting = RuntimeSetting(world=Setting(transaction_timeout_ms=1_500), **{**chosen, **given})
    steps = (
        STORIES[story](random) if story else _rounds(random, setting, aborts=aborts, stands=stands)
    )
    return Scenario(seed, setting, tuple(steps))


def _rounds(
    random: Random, setting: RuntimeSetting, *, aborts: bool, stands: bool
) -> Iterator[Step[Any]]:
    """Yield rounds of records, rest, days and restarts; some rest comes before each pass."""
    yield Step(800, feed_some(random))
    may_stand = stands and setting.kind in OLD_TIMES
    if setting.kind in OLD_TIMES:  # their records may be older than any retention when they come
        for topic in (INPUT, OTHER):
            yield Step(0, SetTopic(topic, "retention.ms", "-1"))
    for _ in range(ROUNDS):
        yield Step(100, feed_some(random))
        if random.random() < 0.3 and aborts:
            yield Step(50, Abort(random.getrandbits(16)))
            yield Step(MOVED_MS, Rest())
        yield Step(100, Rest())
        stands = random.random() < 0.5 and may_stand
        days = random.choice((0.5, 1.5, 3, 5, 8))
        chance = random.random()
        if chance < 0.35:
            yield Step(50, Pass(days, stands))
        elif chance < 0.75:
            yield Step(50, StopAll(killed=random.random() < 0.3))
            yield Step(10, Pass(min(days, 5), stands))
            yield from _come_back(random)
        else:
            worker = random.randrange(setting.workers)
            yield Step(50, Pass(days, stands))
            yield Step(50, Kill(worker))
            if random.random() < 0.5:
                yield Step(10, Replace(worker))
            yield Step(random.choice((10, 1_500)), Start(worker))
        yield Step(random.choice((50, 500)), feed_some(random))
    yield Step(100, feed_some(random))


def _come_back(random: Random) -> Iterator[Step[Any]]:
    for machine in (0, 1):
        if random.random() < 0.5:
            yield Step(0, Replace(machine))
    for worker in random.sample((0, 1), 2):
        yield Step(random.choice((0, 300)), Start(worker))


def _stopped_beyond_offsets(random: Random) -> Iterator[Step[Any]]:
    """Stop the application for longer than an empty group's offsets are kept."""
    yield Step(800, feed_some(random))
    yield Step(100, Rest())
    if random.random() < 0.7:  # else the inputs are gone as well
        yield Step(0, SetTopic(INPUT, "retention.ms", "-1"))
    yield Step(50, StopAll(killed=random.random() < 0.3))
    # An empty group's time begins when its last member is gone.
    yield Step(1_500, Pass(8))
    yield from _come_back(random)
    yield Step(500, feed_some(random))


def _offsets_set_back(random: Random) -> Iterator[Step[Any]]:
    """Set the offsets of a stopped application back, or delete some, and start it again."""
    yield Step(800, feed_some(random))
    yield Step(100, feed_some(random))
    yield Step(100, Rest())
    yield Step(50, StopAll(killed=random.random() < 0.3))
    yield Step(1_500, SetOffsets(random.choice((1, 3, 100)), deletes=random.random() < 0.3))
    yield from _come_back(random)
    yield Step(500, feed_some(random))


def _partition_added(random: Random) -> Iterator[Step[Any]]:
    """Add a partition to the input of a stopped application, and start it again."""
    yield Step(800, feed_some(random))
    yield Step(100, feed_some(random))
    yield Step(100, Rest())
    yield Step(50, StopAll())
    yield Step(50, AddPartition())
    yield from _come_back(random)
    yield Step(500, feed_some(random))
    yield Step(500, feed_some(random))


def _partition_added_at_latest(random: Random) -> Iterator[Step[Any]]:
    """Add a partition, with records, to the input of an application that begins at the ends."""
    yield Step(3_000, Rest())  # it has begun, in partitions without a record
    for _ in range(random.choice((0, 2))):
        yield Step(100, feed_some(random))
    if random.random() < 0.5:
        yield Step(100, Rest())
    when = random.choice(("running", "stopped", "stopped afterwards"))
    if when == "stopped":
        yield Step(50, StopAll(killed=random.random() < 0.5))
    yield Step(50, AddPartition())
    yield Step(50, feed_some(random))
    if when == "stopped afterwards":
        yield Step(50, StopAll(killed=random.random() < 0.5))
    if when != "running":
        yield from _come_back(random)
    yield Step(500, feed_some(random))


def _changelog_that_deletes(random: Random) -> Iterator[Step[Any]]:
    """Let somebody set the changelog to delete what is old, while the application is stopped."""
    yield Step(800, feed_some(random))
    yield Step(100, feed_some(random))
    yield Step(100, Rest())
    yield Step(50, StopAll())
    yield Step(50, SetTopic(CHANGELOG, "cleanup.policy", "delete"))
    yield from _come_back(random)
    yield Step(800, feed_some(random))
    yield Step(100, Rest())
    yield Step(50, Pass(8))
    yield Step(50, StopAll())
    yield from _come_back(random)
    yield Step(500, feed_some(random))


def _idle_after_aborted(random: Random) -> Iterator[Step[Any]]:
    """Let inputs that end with aborted records expire; then one worker is replaced."""
    yield Step(800, feed_some(random))
    yield Step(100, Rest())
    yield Step(50, Abort(random.getrandbits(16)))
    yield Step(MOVED_MS, Rest())
    yield Step(50, Pass(8))
    yield Step(100, StopAll())
    yield from _come_back(random)
    yield Step(500, feed_some(random))


def _killed_behind_aborted(random: Random) -> Iterator[Step[Any]]:
    """Kill all workers before a position behind aborted records is committed; these expire."""
    yield Step(800, feed_some(random))
    yield Step(100, Rest())
    yield Step(50, SetTopic(INPUT, "retention.ms", str(DAY_MS)))
    yield Step(50, Abort(random.getrandbits(16)))
    yield Step(random.choice((0, 200, MOVED_MS)), StopAll(killed=True))
    yield Step(50, Pass(2))
    yield from _come_back(random)
    yield Step(500, feed_some(random))


def _windows_that_stand(random: Random) -> Iterator[Step[Any]]:
    """Let days pass in which event time stands, and then move the tasks to new machines."""
    yield Step(800, feed_some(random))
    yield Step(100, feed_some(random))
    yield Step(100, Rest())
    yield Step(50, Pass(random.choice((2, 3, 5)), stands=True))
    yield Step(50, StopAll())
    for machine in (0, 1):
        yield Step(0, Replace(machine))
    for worker in (0, 1):
        yield Step(0, Start(worker))
    yield Step(500, feed_some(random))


def _topic_made_again(random: Random) -> Iterator[Step[Any]]:
    """Make the input again, while the application runs or is stopped."""
    yield Step(800, feed_some(random))
    yield Step(100, Rest())
    stopped = random.random() < 0.5
    if stopped:
        yield Step(50, StopAll())
    yield Step(50, Recreate())
    if stopped:
        yield from _come_back(random)
    for _ in range(4):  # more records than there were before
        yield Step(random.choice((10, 300)), feed_some(random))
    yield Step(500, feed_some(random))


def _lost_unread(random: Random) -> Iterator[Step[Any]]:
    """Let records expire that were not read: the application must not go on without a word."""
    yield Step(800, feed_some(random))
    yield Step(100, Rest())
    yield Step(50, StopAll())
    yield Step(0, SetTopic(INPUT, "retention.ms", str(DAY_MS)))
    yield Step(50, feed_some(random))
    yield Step(200, Pass(2))
    yield from _come_back(random)
    yield Step(500, feed_some(random))


def _idle_for_weeks(random: Random) -> Iterator[Step[Any]]:
    """Let the application run without a record for longer than anything is remembered."""
    yield Step(800, feed_some(random))
    yield Step(100, feed_some(random))
    yield Step(0, SetTopic(INPUT, "retention.ms", "-1"))
    for _ in range(2):
        yield Step(100, Rest())
        for _ in range(random.choice((1, 3))):
            yield Step(50, Pass(random.choice((2, 8))))
        if random.random() < 0.5:
            yield Step(50, StopAll())
            yield from _come_back(random)
        yield Step(random.choice((50, 500)), feed_some(random))


def _begun_at_the_end(random: Random) -> Iterator[Step[Any]]:
    """Begin where the input ends, and stop before the first record comes."""
    # Long enough to have begun; a kill then leaves no time for the looks at positions that moved.
    killed = random.random() < 0.5
    yield Step(3_000 if killed else MOVED_MS, StopAll(killed))
    yield Step(50, feed_some(random))
    yield Step(100, Pass(random.choice((0.5, 3))))
    yield from _come_back(random)
    yield Step(500, feed_some(random))


def _reset_interrupted(random: Random) -> Iterator[Step[Any]]:
    """Reset a stopped application, but for its offsets, and start it again in between."""
    yield Step(800, feed_some(random))
    yield Step(100, feed_some(random))
    yield Step(100, Rest())
    yield Step(50, StopAll(killed=random.random() < 0.3))
    yield Step(1_500, DeleteChangelog())
    yield from _come_back(random)
    yield Step(500, feed_some(random))


def _changelog_filled_again(random: Random) -> Iterator[Step[Any]]:
    """Lose all disks, and make the changelog again with as many offsets as it had."""
    yield Step(800, feed_some(random))
    yield Step(100, feed_some(random))
    yield Step(100, Rest())
    yield Step(50, StopAll(killed=random.random() < 0.3))
    yield Step(1_500, FillChangelog())
    for machine in (0, 1):
        yield Step(0, Replace(machine))
    for worker in random.sample((0, 1), 2):
        yield Step(random.choice((0, 300)), Start(worker))
    yield Step(500, feed_some(random))


BEGUN_AT_THE_END = "begun at the end"
STORIES = {
    "idle for weeks": _idle_for_weeks,
    "stopped beyond offsets": _stopped_beyond_offsets,
    "offsets set back": _offsets_set_back,
    "partition added": _partition_added,
    "partition added at latest": _partition_added_at_latest,
    "changelog that deletes": _changelog_that_deletes,
    "idle after aborted": _idle_after_aborted,
    "killed behind aborted": _killed_behind_aborted,
    "windows that stand": _windows_that_stand,
    "topic made again": _topic_made_again,
    "lost unread": _lost_unread,
    "reset interrupted": _reset_interrupted,
    "changelog filled again": _changelog_filled_again,
    BEGUN_AT_THE_END: _begun_at_the_end,
    "layout changed": change_layout,
}
"""Fixed sequences of steps, by name."""
LATEST = {"auto_offset_reset": "latest", "metadata_max_age_ms": 1_000}
"""The settings of applications that begin with the first record after their first start."""
SETTINGS_OF_STORIES: dict[str, dict[str, Any]] = {
    "partition added at latest": LATEST,
    BEGUN_AT_THE_END: LATEST,
    "layout changed": KEPT_LONG,
}
