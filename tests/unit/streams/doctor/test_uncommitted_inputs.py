"""Test what is said of inputs without an offset whose tasks have no state."""

from __future__ import annotations

import pytest

from streams import App, serdes
from streams.common.topic_partitions import Partition
from streams.doctor.findings import Verdict
from streams.doctor.symptom_codes import add_symptom_code
from streams.doctor.uncommitted_inputs import (
    describe_uncommitted_inputs,
    group_uncommitted_inputs_by_topic,
    list_partitions_begun_by_policy,
)
from streams.settings.offset_reset import InitialPolicies, parse_reset_policy, parse_source_policy
from streams.topology.initial_policies import find_initial_policies

SPANS = {Partition("lines", 1): 7, Partition("lines", 0): 5, Partition("words", 0): 1}


def by_default(policy: str) -> InitialPolicies:
    return InitialPolicies(parse_reset_policy(policy, stop_word="none"))


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("earliest", "reads all 12 offsets that are there"),
        ("latest", "leaves out all 12 offsets that are there"),
        ("none", "is refused"),
        ("by_duration:PT1H", "begins as this policy says"),
    ],
)
def test_what_the_next_start_does_is_said_by_the_policy(policy: str, said: str) -> None:
    described = describe_uncommitted_inputs(
        group_uncommitted_inputs_by_topic(SPANS), by_default(policy)
    )
    lines, words = (add_symptom_code(each) for each in described)
    assert (lines.verdict, lines.code) == (Verdict.WARNING, "MR-025")
    assert "input 'lines' in 2 partitions" in lines.what
    assert said in lines.consequence
    assert f"auto_offset_reset={policy.partition(':')[0]}" in lines.consequence
    assert "group reset" in lines.remedy
    assert "'words' in 1 partition" in words.what


def test_a_policy_of_a_source_or_a_start_time_goes_before_the_setting() -> None:
    app = App("a", start_at=5_000, auto_offset_reset="earliest")
    app.stream("lines", key=serdes.string, value=serdes.string, offset_reset="latest").to("out")
    app.stream("words", key=serdes.string, value=serdes.string).to("out")
    policies = find_initial_policies(app.topology(), app.config)
    lines, words = describe_uncommitted_inputs(group_uncommitted_inputs_by_topic(SPANS), policies)
    assert "by offset_reset=latest of its source the next start leaves out" in lines.consequence
    assert "by start_at=5000 the next start begins as this policy says" in words.consequence


def test_a_partition_that_was_added_begins_by_no_policy_but_that_not_to_begin() -> None:
    old, added, other = Partition("lines", 0), Partition("lines", 1), Partition("words", 0)
    policies = by_default("latest")
    assert list_partitions_begun_by_policy([old, added, other], {old}, policies) == [other]
    stopping = InitialPolicies(policies.default, {"lines": parse_source_policy("none")})
    assert list_partitions_begun_by_policy([old, added], {old}, stopping) == [added]


def test_without_such_inputs_nothing_is_said() -> None:
    assert (
        list(
            describe_uncommitted_inputs(
                group_uncommitted_inputs_by_topic({}), by_default("earliest")
            )
        )
        == []
    )
