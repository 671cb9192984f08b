"""Test the checks of inputs, internal topics and stores with facts that are fine and wrong."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from streams import App, serdes
from streams.commands.plan_changelogs import ChangelogReview
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.doctor import inputs, stores
from streams.doctor.findings import DoctorFinding, Verdict, create_error_finding
from streams.doctor.store_points import derive_needed_counts, has_run_since_reset
from streams.doctor.symptom_codes import add_symptom_code
from streams.runtime.assigning.internal_topics import REPARTITION_SETTINGS
from streams.runtime.offsets.offset_metadata import RESET_BEGUN, RESET_DONE
from streams.settings.exception_handlers import ExceptionHandler, dead_letter

FINE, WARNING, ERROR = Verdict.FINE, Verdict.WARNING, Verdict.ERROR
LINES = [Partition("lines", number) for number in range(4)]


def verdicts(found: Iterable[DoctorFinding]) -> list[Verdict]:
    return [each.verdict for each in found]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"cleanup.policy": "delete", "retention.ms": "1000"}, 9_200),
        ({"cleanup.policy": "compact", "retention.ms": "1000"}, None),
        ({"cleanup.policy": "delete", "retention.ms": "-1"}, None),
    ],
)
def test_when_records_are_about_to_be_lost(settings: dict[str, str], expected: int | None) -> None:
    assert inputs.find_expiring_time_ms(settings, 10_000) == expected


def test_partitions_of_joins() -> None:
    together = [frozenset({"a", "b"})]
    assert verdicts(inputs.check_copartitions(together, {"a": 2, "b": 2})) == [FINE]
    assert verdicts(inputs.check_copartitions([], {"a": 2})) == []
    (found,) = inputs.check_copartitions(together, {"a": 2, "b": 3})
    assert (found.verdict, "a has 2, b has 3" in found.what) == (ERROR, True)
    assert "repartition(partitions=2)" in found.remedy


def test_partitions_added_to_one_topic_of_a_join_are_not_to_be_added_to_the_other() -> None:
    counts = {"a": 4, "b": 8, "c": 9}
    together = [frozenset({"a", "b"}), frozenset({"c"})]
    assert inputs.list_topics_of_unequal_counts(together, counts) == {"a", "b"}
    (found,) = inputs.check_copartitions(together, counts, {"a": 4, "b": 4})
    assert (found.verdict, found.code) == (ERROR, "MR-025")
    assert "b had 4: partitions were added" in found.what
    assert "don't add partitions to a as well" in found.remedy
    assert ".repartition(partitions=4)" in found.remedy
    assert "make the counts equal" not in found.remedy


def test_skew_of_partitions() -> None:
    even = dict.fromkeys(LINES, 2_000)
    assert verdicts(inputs.check_skew(even, dict.fromkeys(LINES, 0))) == [FINE]
    (sized,) = inputs.check_skew(even | {LINES[2]: 9_000}, dict.fromkeys(LINES, 0))
    assert (sized.verdict, "lines[2] has 9,000 records" in sized.what) == (WARNING, True)
    (lagging,) = inputs.check_skew(even, dict.fromkeys(LINES, 10) | {LINES[1]: 5_000})
    assert "lines[1] has 5,000 lag" in lagging.what
    few = dict.fromkeys(LINES, 2) | {LINES[0]: 100}
    assert verdicts(inputs.check_skew(few, few)) == [FINE]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([b"a", b"b", b"c"], [FINE]),
        ([b"a", b"a", b"c"], [WARNING]),
        ([None, None, b"c"], [FINE]),
        ([], []),
    ],
)
def test_skew_of_keys(keys: list[bytes | None], expected: list[Verdict]) -> None:
    assert verdicts(inputs.check_for_hot_key(LINES[0], keys)) == expected


def test_next_records() -> None:
    assert verdicts(inputs.check_next_records({}, 0)) == []
    assert verdicts(inputs.check_next_records({}, 3)) == [FINE]
    (found,) = inputs.check_next_records({(LINES[1], 17): "string raises ValueError"}, 3)
    assert (found.verdict, "lines[1]@17" in found.what) == (ERROR, True)
    assert "consume lines --partition 1 --from 17 -n 5 --until-end" in found.remedy
    assert "MILLRACE_DESERIALIZATION_HANDLER=skip" in found.remedy


@pytest.mark.parametrize(
    ("handler", "fate"),
    [
        ("skip", "it is skipped"),
        (dead_letter("bad-lines"), "becomes a dead letter in bad-lines"),
        (lambda context: "skip", "a function, decides"),
    ],
)
def test_next_records_for_which_there_is_a_handler(handler: ExceptionHandler, fate: str) -> None:
    faults = {(LINES[1], 17): "string raises ValueError"}
    (found,) = inputs.check_next_records(faults, 3, handler)
    assert found.verdict == WARNING
    assert fate in found.consequence
    assert "deserialization_handler=fail" not in found.consequence
    assert "HANDLER" not in found.remedy
    assert verdicts(inputs.check_next_records({}, 3, handler)) == [FINE]


@pytest.mark.parametrize(
    ("there", "has_run", "expected"),
    [
        ({"a", "b"}, True, [FINE]),
        ({"a"}, False, [FINE]),
        ({"a"}, True, [ERROR]),
    ],
)
def test_internal_topics(there: set[str], has_run: bool, expected: list[Verdict]) -> None:
    found = list(stores.check_internal_topics(["a", "b"], [], there, has_run=has_run))
    assert verdicts(found) == expected


@pytest.mark.parametrize(
    ("metadata", "has_run"),
    [([], False), ([RESET_DONE], False), ([RESET_BEGUN], True), ([RESET_DONE, ""], True)],
)
def test_offsets_that_a_reset_has_set_are_no_run(metadata: list[str], has_run: bool) -> None:
    committed = {
        Partition("lines", number): OffsetAndMetadata(7, text)
        for number, text in enumerate(metadata)
    }
    assert has_run_since_reset(committed) == has_run


def test_a_topic_with_committed_offsets_that_is_gone() -> None:
    (found,) = stores.check_internal_topics([], ["app-r-repartition"], {"a"}, has_run=True)
    assert (found.verdict, "app-r-repartition" in found.what) == (ERROR, True)


def test_a_reset_is_not_advised_at_once_where_another_program_may_have_the_id() -> None:
    (found,) = stores.check_internal_topics(
        ["app-a-changelog"], ["orders"], {"orders"}, has_run=True, foreign_topics={"orders"}
    )
    assert "offsets of orders too" in found.remedy
    assert found.remedy.index("change application_id") < found.remedy.index("group reset")


def test_partitions_of_internal_topics() -> None:
    assert verdicts(stores.check_partition_counts({"a": 3}, {"a": 3})) == [FINE]
    assert verdicts(stores.check_partition_counts({"a": 3}, {"a": 2})) == [ERROR]
    assert verdicts(stores.check_partition_counts({}, {})) == []


def test_a_repartition_topic_behind_a_pattern_that_is_narrower_than_the_inputs_is_told() -> None:
    (found,) = stores.check_partition_counts(
        {"a-r-repartition": 2},
        {"a-r-repartition": 2, "in-1": 2, "in-2": 4},
        ["in-1", "in-2"],
        ["a-r-repartition"],
    )
    assert found.verdict == FINE
    assert "a-r-repartition has 2 partitions, as when it was created" in found.what
    assert "the widest input has 4" in found.what


def test_partitions_that_were_added_to_an_input_lead_to_gentle_ways_first() -> None:
    (found,) = stores.check_partition_counts(
        {"a-c-changelog": 6}, {"a-c-changelog": 4, "lines": 6}, ["lines"]
    )
    assert (found.verdict, "as lines has now: partitions were added" in found.what) == (ERROR, True)
    assert found.remedy.index(".repartition(partitions=4)") < found.remedy.index("group reset")


def test_the_partitions_that_a_topology_needs() -> None:
    app = App("a")
    lines = app.stream("lines", key=serdes.string, value=serdes.string)
    lines.group_by(lambda _, value: value, key=serdes.string).count(store="c")
    needed = derive_needed_counts(app.topology(), {"lines": 5})
    assert needed == {"a-c-repartition": 5, "a-c-changelog": 5}


def test_settings_of_internal_topics() -> None:
    wanted = {"a": REPARTITION_SETTINGS, "gone": REPARTITION_SETTINGS}
    assert verdicts(stores.check_settings(wanted, {"a": REPARTITION_SETTINGS})) == [FINE]
    lossy = {"a": {**REPARTITION_SETTINGS, "retention.ms": "1000"}}
    (found,) = stores.check_settings(wanted, lossy)
    assert (found.verdict, "retention.ms=1000" in found.what) == (ERROR, True)
    assert "retention.ms=-1" in found.remedy


def test_changelogs_that_can_rebuild_no_store() -> None:
    assert verdicts(stores.check_changelogs(ChangelogReview(), 2)) == [FINE]
    refused = ChangelogReview({"c": "it begins at 5"}, {"d": "3 records"})
    assert verdicts(stores.check_changelogs(refused, 2)) == [ERROR, WARNING]
    unknown = ChangelogReview(unknown="no answer")
    assert verdicts(stores.check_changelogs(unknown, 2)) == [Verdict.NOT_LOOKED_AT]


def test_stores_on_disk(tmp_path: Path) -> None:
    assert stores.read_stores_on_disk(tmp_path) == []
    kept = {"0": {"sources": ["lines"], "stores": ["c", "old"]}}
    (tmp_path / "subtopologies.json").write_text(json.dumps(kept))
    (tmp_path / "0_1" / "c").mkdir(parents=True)
    assert stores.read_stores_on_disk(tmp_path) == ["c"]
    assert verdicts(stores.check_disk_contents(tmp_path, ["c"], ["c", "d"])) == [FINE]
    (found,) = stores.check_disk_contents(tmp_path, ["c", "old"], ["c"])
    assert (found.verdict, "old" in found.what) == (WARNING, True)


def test_positions_of_stores_on_disk() -> None:
    assert verdicts(stores.check_store_positions({})) == []
    assert verdicts(stores.check_store_positions({"0_0/c": (5, 5)})) == [FINE]
    (found,) = stores.check_store_positions({"0_0/c": (5, 5), "0_1/c": (4, 5)})
    assert (found.verdict, "0_1/c" in found.what) == (WARNING, True)


HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("retention_minutes", "expiration_ms", "expected"),
    [(None, None, FINE), (600, 10 * HOUR_MS, FINE), (100, None, WARNING), (600, HOUR_MS, WARNING)],
)
def test_idle_time(
    retention_minutes: int | None, expiration_ms: int | None, expected: Verdict
) -> None:
    found = stores.check_idle_time(HOUR_MS, retention_minutes, expiration_ms)
    assert verdicts(found) == [expected]


def test_a_damaged_file_of_numbers_is_one_finding(tmp_path: Path) -> None:
    file = tmp_path / "subtopologies.json"
    for text in ("{", "[]", '{"0": {}}', '{"0": {"stores": 1}}'):
        file.write_text(text)
        with pytest.raises(ValueError, match="is damaged"):
            stores.read_stores_on_disk(tmp_path)
    (found,) = stores.report_damaged_numbers_file(tmp_path, "damaged")
    assert (found.verdict, f"rm {file}" in found.remedy) == (ERROR, True)


def test_records_with_one_fault_are_one_finding() -> None:
    faults = {(p, 5): "utf8 raises" for p in LINES[:3]}
    (found,) = inputs.check_next_records(faults, 9)
    assert "lines[0]@5 is to be processed soon" in found.what
    assert "nor can lines[1]@5, lines[2]@5" in found.what


def test_the_newest_records_of_a_skewed_partition_are_shown() -> None:
    sizes = {LINES[0]: 9_000, LINES[1]: 10, LINES[2]: 10}
    lags = dict.fromkeys(LINES, 0)
    (found,) = inputs.check_skew(sizes, lags, {LINES[0]: 50_000}, " of the last hour")
    assert "9,000 records of the last hour" in found.what
    assert "--partition 0 --from 49900 -n 100 --until-end" in found.remedy


@pytest.mark.parametrize(
    ("topic", "code"), [("a-s-changelog", "MR-024"), ("a-by-key-repartition", "MR-025")]
)
def test_the_page_of_an_internal_topic_that_is_gone_is_that_of_its_kind(
    topic: str, code: str
) -> None:
    (found,) = stores.check_internal_topics({topic}, (), (), has_run=True)
    assert add_symptom_code(found).code == code


def test_the_page_of_a_certificate_that_brokers_refuse_is_that_of_access() -> None:
    refused = "the broker at k:1 refused the client certificate, which has expired: it was valid"
    assert add_symptom_code(create_error_finding("connection", refused, "", "")).code == "MR-043"
    assert (
        add_symptom_code(create_error_finding("connection", "no answer", "", "")).code == "MR-040"
    )
