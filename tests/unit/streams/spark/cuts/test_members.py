"""Test which transactions and records are in a cut, against a model that looks at each of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.ledger import LedgerTransaction, WrittenRange
from streams.spark.cuts.cut import Cut, StoreCut
from streams.spark.cuts.members import (
    Members,
    find_runs_outside_cut,
    in_flight,
    merge_runs,
    ranges_in_cut,
    trim_excluded_ends,
)

LINES, WORDS = Partition("lines", 0), Partition("words", 0)
OUT, LOG = Partition("out", 0), Partition("app-s-changelog", 0)


@dataclass
class Model:
    """Represents the transactions of two upstream tasks and of a downstream one.

    The upstream tasks write `words`; the downstream one reads it and writes `out` and the
    changelog. Each record has the number of its transaction, and a marker has None.
    """

    entries: list[LedgerTransaction] = field(default_factory=list)
    written: dict[Partition, list[int | None]] = field(default_factory=dict)
    offsets: list[dict[Partition, int]] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    commits: list[dict[Partition, int]] = field(default_factory=list)
    """The committed offsets after each number of transactions."""

    def at(self, taken: int) -> Cut:
        return Cut(
            application_id="app",
            taken_ms=0,
            offsets=self.offsets[taken],
            stores={"s": StoreCut(LOG.topic, {0: self.positions[taken]})},
            commits=self.commits[taken],
        )

    def of(self, partition: Partition, taken: int) -> list[int]:
        """Return the offsets that the first `taken` transactions wrote in a partition."""
        found = self.written.get(partition, [])
        return [at for at, by in enumerate(found) if by is not None and by < taken]


def _may_overlap(steps: list[str]) -> bool:
    """Return whether the steps are of different tasks; those not beginning with "up" are of one."""
    return len({step if step.startswith("up") else "down" for step in steps}) == len(steps)


@st.composite
def histories(draw: st.DrawFn) -> Model:
    """Draw transactions that overlap in what they write, and commit one after the other."""
    model = Model()
    lines = [Partition("lines", 0), Partition("lines", 1)]
    read = dict.fromkeys([*lines, WORDS], 0)
    model.offsets.append(dict(read))
    model.positions.append(0)
    model.commits.append(dict(read))  # 0: nothing is committed
    kinds = ["up 0", "up 1", "down", "punctuate", "announce"]
    steps = draw(st.lists(st.sampled_from(kinds), max_size=14))
    at = 0
    while at < len(steps):  # one, or two at a time
        together = steps[at : at + 2] if draw(st.booleans()) else steps[at : at + 1]
        if not _may_overlap(together):
            together = together[:1]
        at += len(together)
        runs: list[dict[Partition, list[int]]] = [{} for _ in together]
        first = len(model.entries)
        for _ in range(draw(st.integers(1, 4))):  # by turns, so that the runs of offsets alternate
            for index, step in enumerate(together):
                targets = [WORDS] if step.startswith("up") else [OUT, LOG]
                if step == "announce":
                    targets = [OUT]
                for target in targets:
                    log = model.written.setdefault(target, [])
                    runs[index].setdefault(target, []).append(len(log))
                    log.append(first + index)
        committed = len([each for each in model.written.get(WORDS, []) if each is not None])
        for index, step in enumerate(together):
            inputs: dict[Partition, int]
            match step:
                case "up 0" | "up 1":
                    partition = lines[int(step[-1])]
                    read[partition] += draw(st.integers(1, 3))
                    inputs = {partition: read[partition]}
                case "down" if read[WORDS] < committed and len(together) == 1:
                    read[WORDS] = draw(st.integers(read[WORDS] + 1, len(model.written[WORDS])))
                    inputs = {WORDS: read[WORDS]}
                case _:  # a punctuation, which may have changed the store
                    inputs = {WORDS: read[WORDS]}
            written = {
                p: tuple(merge_runs(WrittenRange(o, o) for o in o_s))
                for p, o_s in runs[index].items()
            }
            number = len(model.entries) + 1
            model.entries.append(
                LedgerTransaction(index, 0, {step: inputs}, written, {step: number})
            )
            model.commits.append(model.commits[-1] | dict.fromkeys(inputs, number))
            for target in runs[index]:
                model.written[target].append(None)
            if LOG in runs[index]:
                model.positions.append(runs[index][LOG][-1] + 1)
            else:
                model.positions.append(model.positions[-1])
            model.offsets.append(
                dict(read) if len(together) == 1 else {**model.offsets[-1], **inputs}
            )
    return model


@settings(max_examples=300, deadline=None)
@given(histories(), st.data())
def test_a_cut_has_exactly_what_its_transactions_wrote(model: Model, data: Any) -> None:
    taken = data.draw(st.integers(0, len(model.entries)))
    cut = model.at(taken)
    members = Members(cut)
    assert [members.includes_transaction(each) for each in model.entries] == [
        number < taken for number in range(len(model.entries))
    ]
    highs = {  # the high watermarks at some time after the cut
        p: data.draw(st.integers(max(model.of(p, taken), default=-1) + 1, len(log)))
        for p, log in model.written.items()
        if p != LOG
    }
    ends, out = trim_excluded_ends(highs, find_runs_outside_cut(model.entries, cut, highs))
    cut = replace(cut, ends=ends, beyond=out)
    assert Cut.from_json(cut.to_json()) == cut
    for partition in highs:
        records = {o for o, by in enumerate(model.written[partition]) if by is not None}
        found = {o for r in ranges_in_cut(cut, partition.topic) for o in range(r.first, r.until)}
        assert sorted(found & records) == model.of(partition, taken)
        assert all(run.first < ends[partition] for run in out.get(partition, ()))
    between = {o for r in in_flight(cut) for o in range(r.first, r.until)}
    unread = [o for o in model.of(WORDS, taken) if o >= cut.offsets[WORDS]]
    records = {o for o, by in enumerate(model.written.get(WORDS, [])) if by is not None}
    assert sorted(between & records) == unread


def test_a_punctuation_that_changed_a_store_is_told_from_what_was_before_it() -> None:
    offsets = {LINES: 5}
    cut = Cut(
        application_id="app", taken_ms=0, offsets=offsets, stores={"s": StoreCut(LOG.topic, {0: 3})}
    )
    before = LedgerTransaction(1, 0, {"0_0": offsets}, {LOG: (WrittenRange(2, 2),)})
    after = LedgerTransaction(
        1, 0, {"0_0": offsets}, {LOG: (WrittenRange(4, 4),), OUT: (WrittenRange(9, 9),)}
    )
    silent = LedgerTransaction(1, 0, {"0_0": offsets}, {OUT: (WrittenRange(11, 11),)})
    members = Members(cut)
    assert [members.includes_transaction(each) for each in (before, after, silent)] == [
        True,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("entry", "cut", "inside"),
    [
        (None, None, True),
        (None, 7, True),
        (8, None, True),
        (6, 7, True),
        (7, 7, True),
        (8, 7, False),
    ],
)
def test_a_punctuation_that_wrote_to_a_topic_alone_is_told_by_the_number_of_its_commit(
    entry: int | None, cut: int | None, inside: bool
) -> None:
    """Test that the commit number decides whether a transaction without new input is in the cut.

    Metadata without room has no number: then it is in the cut if the transaction before it is.
    """
    taken = Cut(
        application_id="app",
        taken_ms=0,
        offsets={LINES: 5},
        commits={} if cut is None else {LINES: cut},
    )
    commits = {} if entry is None else {"0_0": entry}
    silent = LedgerTransaction(1, 0, {"0_0": {LINES: 5}}, {OUT: (WrittenRange(11, 11),)}, commits)
    assert Members(taken).includes_transaction(silent) == inside
    assert Members(replace(taken, offsets={LINES: 6})).includes_transaction(silent), (
        "it has read on since"
    )
    assert Cut.from_json(taken.to_json()) == taken


def test_a_topic_in_place_of_a_changelog_is_no_measure_of_what_is_written_to_it() -> None:
    """Test that writes to a source topic used as a changelog don't decide membership in the cut.

    The topic may be written further than it was read.
    """
    table = Partition("table", 0)
    cut = Cut(
        application_id="app",
        taken_ms=0,
        offsets={LINES: 5, table: 3},
        stores={"t": StoreCut("table", {0: 3})},
    )
    assert Members(cut).includes_transaction(
        LedgerTransaction(1, 0, {"0_0": {LINES: 5}}, {table: (WrittenRange(7, 8),)})
    )


def test_a_cut_that_does_not_tell_what_was_written_says_what_would() -> None:
    cut = Cut(application_id="app", taken_ms=0, offsets={LINES: 5})
    with pytest.raises(ConfigError, match="ledger=True"):
        in_flight(cut)
    with pytest.raises(ConfigError, match=r"no topic 'uot' that is written; it does of out"):
        ranges_in_cut(replace(cut, ends={OUT: 3}), "uot")
