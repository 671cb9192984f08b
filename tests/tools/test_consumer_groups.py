"""Test kafka-consumer-groups and kafka-groups: what a group has read, where it is to go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from tests.tools.shell import Pair

Same = Callable[[str], str]
GROUPS = "kafka-consumer-groups --bootstrap-server {}"
NEW_YEAR_2020_MS = 1_577_836_800_000  # UTC
RECORDS = 10


@pytest.fixture(scope="module")
def topic(pair: Pair) -> str:
    """Create a topic of two partitions on both brokers.

    The first has a record for each of the first 10 seconds of the year 2020, the other has none.
    """
    name = "read"
    create = f"kafka-topics --bootstrap-server {{}} --create --topic {name} --partitions 2"
    for shell in (pair.ours, pair.kafkas):
        assert shell.run(f"{create} --config retention.ms=-1").status == 0
        producer = Producer({"bootstrap.servers": shell.bootstrap_servers, "linger.ms": 0})
        for number in range(RECORDS):
            timestamp_ms = NEW_YEAR_2020_MS + number * 1_000
            producer.produce(name, b"x", partition=0, timestamp=timestamp_ms)
        assert producer.flush(20) == 0
    return name


@contextmanager
def reading(pair: Pair, group: str, topic: str, protocol: str) -> Iterator[None]:
    """Run one member on each broker, which has read all that there is, and committed that."""
    with ExitStack() as open_now:
        for shell in (pair.ours, pair.kafkas):
            consumer = Consumer(
                {
                    "bootstrap.servers": shell.bootstrap_servers,
                    "client.id": "reader",
                    "group.id": group,
                    "group.protocol": protocol,
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": False,
                }
            )
            open_now.enter_context(closing(consumer))
            consumer.subscribe([topic])
            read = 0
            while read < RECORDS:
                found = consumer.poll(20)
                assert found is not None, f"{protocol}: nothing to read after {read} records"
                assert found.error() is None, found.error()
                read += 1
            consumer.commit(asynchronous=False)
        yield


def table(text: str) -> list[list[str]]:
    """Return the words of each line."""
    return [line.split() for line in text.splitlines() if line]


def rows(text: str, topic: str) -> dict[str, list[str]]:
    """Return all columns after the partition's, for each partition of a topic."""
    return {words[2]: words[3:] for words in table(text) if len(words) > 3 and words[1] == topic}


def offsets(same: Same, group: str, topic: str) -> dict[str, str]:
    """Return CURRENT-OFFSET of each partition."""
    described = same(f"{GROUPS} --describe --group {group}")
    return {partition: found[0] for partition, found in rows(described, topic).items()}


def reset(same: Same, group: str, topic: str, how: str) -> dict[str, str]:
    """Return NEW-OFFSET of each partition.

    --dry-run says the same, and changes nothing.
    """
    command = f"{GROUPS} --reset-offsets --group {group} --topic {topic} {how}"
    before = offsets(same, group, topic)
    planned = same(f"{command} --dry-run")
    assert offsets(same, group, topic) == before
    executed = same(f"{command} --execute")
    assert executed == planned
    found = {partition: words[0] for partition, words in rows(executed, topic).items()}
    assert offsets(same, group, topic) == found
    return found


@pytest.mark.parametrize(
    ("how", "first", "second"),
    [
        ("--to-latest", "10", "0"),
        ("--to-earliest", "0", "0"),
        ("--to-offset 7", "7", "0"),  # the other partition ends at 0
        ("--to-offset 99", "10", "0"),
        ("--to-current", "10", "0"),
        ("--shift-by -3", "7", "0"),
        ("--shift-by 2", "9", "0"),
        ("--shift-by 50", "10", "0"),
        ("--to-datetime 2020-01-01T00:00:04.500", "5", "0"),
        ("--to-datetime 2030-01-01T00:00:00.000", "10", "0"),
        ("--by-duration P1D", "10", "0"),
        ("--by-duration P9000D", "0", "0"),
    ],
)
def test_offsets_are_reset(same: Same, topic: str, how: str, first: str, second: str) -> None:
    """Reset one after the other on the same group: what is shifted is the offset before."""
    assert reset(same, "resetting", topic, how) == {"0": first, "1": second}


def test_offsets_of_one_partition_are_reset_and_the_others_stay(same: Same, topic: str) -> None:
    same(f"{GROUPS} --reset-offsets --group partly --topic {topic} --to-latest --execute")
    command = f"{GROUPS} --reset-offsets --group partly --topic {topic}:0"
    same(f"{command} --to-offset 4 --execute")
    assert offsets(same, "partly", topic) == {"0": "4", "1": "0"}
    none = same(f"{GROUPS} --reset-offsets --group partly --topic nope --to-latest --execute")
    assert "UnknownTopicOrPartitionException" in none
    without = same(f"{command} --to-latest")
    assert "No action will be performed as the --execute option is missing" in without
    before_1970 = same(f"{command} --by-duration P36500D --execute")
    assert "UnsupportedVersionException" in before_1970
    assert offsets(same, "partly", topic) == {"0": "4", "1": "0"}


def test_offsets_are_exported_and_come_back_from_the_file(
    same: Same, topic: str, tmp_path: Path
) -> None:
    command = f"{GROUPS} --reset-offsets --group exporting"
    same(f"{command} --topic {topic} --to-offset 6 --execute")
    exported = same(f"{command} --all-topics --to-current --export --dry-run")
    assert sorted(exported.split()) == [f"{topic},0,6", f"{topic},1,0"]
    file = tmp_path / "offsets.csv"
    file.write_text(exported.strip() + "\n")
    same(f"{command} --all-topics --to-earliest --execute")
    assert offsets(same, "exporting", topic) == {"0": "0", "1": "0"}
    same(f"{command} --from-file {file} --dry-run")
    assert offsets(same, "exporting", topic) == {"0": "0", "1": "0"}
    same(f"{command} --from-file {file} --execute")
    assert offsets(same, "exporting", topic) == {"0": "6", "1": "0"}


def test_several_groups_are_reset_exported_and_described_at_once(same: Same, topic: str) -> None:
    for group in ("one-of-two", "two-of-two"):
        same(f"{GROUPS} --reset-offsets --group {group} --topic {topic}:0 --to-offset 3 --execute")
    both = "--group one-of-two --group two-of-two"
    moved = same(f"{GROUPS} --reset-offsets {both} --topic {topic}:0 --shift-by 1 --execute")
    assert sorted(words[0] for words in table(moved) if topic in words) == [
        "one-of-two",
        "two-of-two",
    ]
    exported = same(f"{GROUPS} --reset-offsets {both} --all-topics --to-current --export --dry-run")
    assert sorted(exported.split()) == [f"one-of-two,{topic},0,4", f"two-of-two,{topic},0,4"]
    described = same(f"{GROUPS} --describe {both} --state")
    assert described.count("Empty") == 2


def test_a_group_without_members_is_described_listed_and_deleted(same: Same, topic: str) -> None:
    same(f"{GROUPS} --reset-offsets --group idle --topic {topic} --to-offset 4 --execute")
    described = same(f"{GROUPS} --describe --group idle")
    assert "Consumer group 'idle' has no active members." in described
    assert rows(described, topic) == {
        "0": ["4", "10", "6", "-", "-", "-"],
        "1": ["0", "0", "0", "-", "-", "-"],
    }
    verbose = same(f"{GROUPS} --describe --group idle --offsets --verbose")
    assert rows(verbose, topic)["0"] == ["-", "4", "10", "6", "-", "-", "-"]
    same(f"{GROUPS} --describe --group idle --members --verbose")
    assert "Empty" in same(f"{GROUPS} --describe --group idle --state --verbose")
    assert ["idle", "Classic", "Empty"] in table(same(f"{GROUPS} --list --type --state"))
    deleted = same(f"{GROUPS} --delete --group idle --group never-seen")
    assert "'never-seen' could not be deleted due to" in deleted
    assert "were deleted successfully: 'idle'" in deleted
    assert "idle" not in same(f"{GROUPS} --list").split()
    assert "Group idle not found" in same(f"{GROUPS} --describe --group idle")
    assert "Group idle not found" in same(f"{GROUPS} --describe --group idle --state")


def test_offsets_are_deleted(same: Same, topic: str) -> None:
    same(f"{GROUPS} --reset-offsets --group forgetful --topic {topic} --to-offset 4 --execute")
    deletes = f"{GROUPS} --delete-offsets --group forgetful"
    assert "Successful" in same(f"{deletes} --topic {topic}:0")
    assert offsets(same, "forgetful", topic) == {"1": "0"}
    unknown = same(f"{deletes} --topic {topic}:1 --topic nope:0 --topic {topic}:9")
    assert unknown.count("UnknownTopicOrPartitionException") == 2
    assert offsets(same, "forgetful", topic) == {}
    assert "forgetful" in same(f"{GROUPS} --list").split()
    none = same(f"{GROUPS} --delete-offsets --group never-seen --topic {topic}")
    assert "The group id does not exist" in none


@pytest.mark.parametrize(
    ("protocol", "kind", "assignor"),
    [("classic", "Classic", "range"), ("consumer", "Consumer", "uniform")],
)
def test_a_group_with_a_member_is_described_and_can_not_be_moved_or_deleted(
    pair: Pair, same: Same, topic: str, protocol: str, kind: str, assignor: str
) -> None:
    group = f"live-{protocol}"
    describe = f"{GROUPS} --describe --group {group}"
    with reading(pair, group, topic, protocol):
        found = rows(same(describe), topic)
        assert found["0"] == ["10", "10", "0", "MEMBER", "/127.0.0.1", "reader"]
        assert found["1"] == ["-", "0", "-", "MEMBER", "/127.0.0.1", "reader"]
        assert rows(same(f"{describe} --offsets --verbose"), topic)["0"][0] == "0"
        assert "reader" in same(f"{describe} --members")
        assert f"{topic}:0,1" in same(f"{describe} --members --verbose")
        for verbose in ("", "--verbose"):
            state = table(same(f"{describe} --state {verbose}"))[-1]
            assert {assignor, "Stable"} < set(state)
        listed = table(same(f"{GROUPS} --list --type {protocol} --state stable"))
        assert [group, kind, "Stable"] in listed
        assert [group, kind, "consumer"] in table(
            same(f"kafka-groups --bootstrap-server {{}} --list --group-type {protocol}")
        )
        reset = f"{GROUPS} --reset-offsets --group {group} --all-topics --to-earliest --execute"
        assert "the current state is Stable" in same(reset)
        assert "GroupNotEmptyException" in same(f"{GROUPS} --delete --group {group}")
        deleted = same(f"{GROUPS} --delete-offsets --group {group} --topic {topic}")
        assert deleted.count("GroupSubscribedToTopicException") == 2
        assert offsets(same, group, topic) == {"0": "10", "1": "-"}
    assert rows(same(describe), topic) == {"0": ["10", "10", "0", "-", "-", "-"]}
    same(f"{GROUPS} --reset-offsets --group {group} --topic {topic} --to-offset 2 --execute")
    assert offsets(same, group, topic) == {"0": "2", "1": "0"}
    assert "was successful" in same(f"{GROUPS} --delete --group {group}")
    assert group not in same(f"{GROUPS} --list").split()


def test_all_groups_are_listed_and_described_by_kind(pair: Pair, topic: str) -> None:
    """List groups in any order: which comes first is a matter of where it lives."""

    def groups(command: str) -> set[str]:
        """Return the groups that the command names, of the ones that are looked at here."""
        ours, kafkas = pair.run(command)
        assert sorted(ours.text.splitlines()) == sorted(kafkas.text.splitlines()), command
        return {words[0] for words in table(ours.text)} & {"lone", "old", "new"}

    for shell in (pair.ours, pair.kafkas):
        shell.run(f"{GROUPS} --reset-offsets --group lone --topic {topic} --to-latest --execute")
    with reading(pair, "old", topic, "classic"), reading(pair, "new", topic, "consumer"):
        for only, expected in (
            ("", {"lone", "old", "new"}),
            ("--consumer", {"lone", "old", "new"}),
            ("--protocol consumer", {"old", "new"}),
            ("--group-type consumer", {"new"}),
            ("--group-type classic --protocol consumer", {"old"}),
            ("--share", set()),
            ("--streams", set()),
        ):
            assert groups(f"kafka-groups --bootstrap-server {{}} --list {only}") == expected, only
        for only, expected in (
            ("", {"lone", "old", "new"}),
            ("--state stable", {"old", "new"}),
            ("--state Stable,Empty --type classic", {"lone", "old"}),
            ("--state assigning", set()),
        ):
            assert groups(f"{GROUPS} --list {only}") == expected, only
        for what in ("", "--members", "--members --verbose", "--state", "--state --verbose"):
            described = groups(f"{GROUPS} --describe --all-groups {what}")
            assert described >= {"old", "new"}, what
    wrong = pair.ours.run(f"{GROUPS} --list --state nosuch").text
    assert "Invalid state list 'nosuch'" in wrong
    groups(f"{GROUPS} --delete --group lone --group old --group new")
    assert groups(f"{GROUPS} --list") == set()
