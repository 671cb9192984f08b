"""Test what `millrace plan` says of changelogs that can't rebuild their stores any more."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from streams import App, serdes, windows
from streams.commands.plan_changelogs import NOT_ASKED, ChangelogReview, find_unrestorable_stores
from streams.commands.root import cli
from streams.common.topic_id_hashes import hash_topic_id
from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.errors import OutcomeUnknown
from streams.runtime.changelogs.window_expiry import WindowExpiry, to_metadata_entries
from streams.runtime.offsets.offset_metadata import encode_metadata
from tests.unit.streams.runtime.fakes import FakeAdmin, Script
from tests.unit.streams.runtime.kafka import Kafka

INPUT = Partition("in", 0)
KEYS, WINDOWS = Partition("a-k-changelog", 0), Partition("a-w-changelog", 0)
NOW_MS = 1_700_000_000_000


class Planned:
    """Represents a cluster with ten records in each changelog of an application, all committed."""

    def __init__(self, **settings: Any) -> None:
        self.app = App("a", **settings)
        grouped = self.app.stream("in", key=serdes.string, value=serdes.string).group_by_key()
        grouped.count(store="k")
        grouped.windowed_by(windows.tumbling(timedelta(minutes=1))).count(store="w")
        self.kafka, self.script = Kafka({"in": 1, KEYS.topic: 1, WINDOWS.topic: 1}), Script()
        self.admin = FakeAdmin(self.kafka, self.script)
        for changelog in (KEYS, WINDOWS):
            self.kafka.load(changelog, *((f"k{n}", "v") for n in range(10)))
        topics = {"k": KEYS.topic, "w": WINDOWS.topic}
        self.metadata = encode_metadata(
            {"k": 10, "w": 10},
            changelog_ids={s: hash_topic_id(self.kafka.topic_ids[t]) for s, t in topics.items()},
            entries=to_metadata_entries("w", WindowExpiry(4)),
        )

    def cut(self, changelog: Partition, offset: int) -> None:
        self.admin.delete_records({changelog: offset})

    def review(self, *, is_committed: bool = True) -> ChangelogReview:
        held = {INPUT: OffsetAndMetadata(10, self.metadata)} if is_committed else {}
        return find_unrestorable_stores(
            self.app.topology(),
            self.app.config,
            self.admin,
            lambda: CommittedOffsets(held, []),
            self.kafka.partition_counts,
            NOW_MS,
        )


def test_nothing_is_said_of_changelogs_that_hold_all_that_was_committed() -> None:
    planned = Planned()
    planned.cut(WINDOWS, 4)  # which has expired
    assert list(planned.review().list_lines()) == []


@pytest.mark.parametrize(("store", "changelog"), [("k", KEYS), ("w", WINDOWS)])
def test_a_changelog_that_was_cut_is_told_with_the_message_of_the_start(
    store: str, changelog: Partition
) -> None:
    planned = Planned()
    planned.cut(changelog, 5)
    review = planned.review()
    assert review.refusals.keys() == {store}
    (line,) = review.list_lines()
    assert line.startswith(f"refused: a start that has to rebuild store {store!r} ends with this: ")
    assert str(changelog) in line


def test_a_changelog_that_was_made_again_is_told() -> None:
    planned = Planned()
    planned.kafka.delete(KEYS.topic)
    planned.kafka.create_topic(KEYS.topic, 1)
    planned.kafka.load(KEYS, *((f"k{n}", "v") for n in range(10)))
    assert "made again" in planned.review().refusals["k"]


def test_a_loss_that_the_application_accepts_is_told_and_not_refused() -> None:
    planned = Planned(changelog_out_of_range="earliest")
    planned.cut(KEYS, 5)
    review = planned.review()
    assert not review.refusals
    assert review.losses.keys() == {"k"}
    (line,) = review.list_lines()
    assert "goes on without records" in line


def test_nothing_rests_on_a_changelog_without_committed_offsets() -> None:
    planned = Planned()
    planned.cut(KEYS, 5)
    assert planned.review(is_committed=False) == ChangelogReview()


def test_what_brokers_do_not_answer_is_not_known() -> None:
    planned = Planned()
    planned.script.fail("admin.fetch_latest_offsets", OutcomeUnknown("no answer"))
    (line,) = planned.review().list_lines()
    assert "is not known: no answer" in line


def test_missing_topics_are_left_to_those_who_tell_them() -> None:
    planned = Planned()
    planned.kafka.delete(KEYS.topic)
    assert planned.review() == ChangelogReview()


VERSION = """
from datetime import timedelta
from streams import App, serdes, windows
app = App("a")
lines = app.stream("in", key=serdes.string, value=serdes.string).group_by_key()
lines.windowed_by(windows.tumbling(timedelta(minutes=1), grace=timedelta({grace}))).count(store="w")
"""


@pytest.mark.parametrize(("grace", "is_told"), [("days=5", True), ("minutes=1", False)])
def test_without_a_broker_it_is_not_known_what_rebuilt_stores_find(
    tmp_path: Path, grace: str, is_told: bool
) -> None:
    saved = tmp_path / "saved.json"
    then, now = f"then_{is_told}", f"now_{is_told}"
    for name, given in ((then, "minutes=1"), (now, grace)):
        (tmp_path / f"{name}.py").write_text(VERSION.format(grace=given))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        for arguments in ([f"{then}:app", "--save"], [f"{now}:app", "--against"]):
            result = CliRunner().invoke(cli, ["plan", *arguments, str(saved)])
            assert result.exit_code == 0, result.output
    assert (NOT_ASKED in result.output) is is_told, result.output
