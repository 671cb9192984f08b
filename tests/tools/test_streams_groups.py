"""Test kafka-streams-groups: an application's tasks, offsets, reset and deletion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from coordinator.errors import Code
from tests.conformance.calls import create_topic, metadata
from tests.conformance.commits import commit
from tests.conformance.streams_members import StreamsMember, internal, topology
from tests.conformance.wire import Api, Client
from tests.processes import wait_until
from tests.tools.shell import Pair, Shell

Same = Callable[[str], str]
GROUPS = "kafka-streams-groups --bootstrap-server {}"
SOURCE = "streamed"


def table(text: str) -> list[list[str]]:
    """Return the words of each line."""
    return [line.split() for line in text.splitlines() if line]


class Application:
    """Represents an application of one member on one broker, which has committed an offset."""

    def __init__(self, shell: Shell, client: Client, name: str) -> None:
        self.internal_topics = f"{name}-by-word-repartition", f"{name}-counts-changelog"
        repartition, changelog = self.internal_topics
        # Real Kafka creates the coordinator's topic when somebody looks for the coordinator.
        assert client.send(Api.FIND_COORDINATOR, 2, key=name, key_type=0).error_code == Code.NONE
        if metadata(client, SOURCE).topics[0].error_code != Code.NONE:
            create_topic(client, SOURCE, 2)
        self.member = StreamsMember(client, name, process_id="p-1", member_id=f"{name}-member")
        self._client = client
        self.member.join(
            topology(
                {"source_topics": (SOURCE,), "repartition_sink_topics": (repartition,)},
                {
                    "repartition_source_topics": [internal(repartition)],
                    "state_changelog_topics": [internal(changelog, cleanup_policy="compact")],
                },
            )
        )
        wait_until(self._has_tasks, what=lambda: f"no tasks: {self.member.tasks}")
        codes = commit(
            client,
            9,
            name,
            {SOURCE: [0, 1], repartition: [0]},
            generation=self.member.epoch,
            member_id=self.member.member_id,
        )
        assert set(codes.values()) == {Code.NONE}, codes

    def _has_tasks(self) -> bool:
        self.member.acknowledge()
        return len(self.member.tasks["active"]) == 4

    def leave(self) -> None:
        assert self.member.leave().error_code == Code.NONE


@pytest.fixture
def start(pair: Pair) -> Iterator[Callable[[str], list[Application]]]:
    """Return a function that starts an application of a name on both brokers."""
    with ExitStack() as open_now:

        def start_on_both(name: str) -> list[Application]:
            return [
                Application(shell, open_now.enter_context(Client(shell.bootstrap_servers)), name)
                for shell in (pair.ours, pair.kafkas)
            ]

        yield start_on_both


def describe_alike(pair: Pair, what: str) -> list[list[str]]:
    """Return the rows that both tools print of the application at work, in any order.

    The name of the assignor is left out: it came with version 1 of StreamsGroupDescribe.
    """
    ours, kafkas = pair.run(f"{GROUPS} --describe --group at-work {what}")
    rows = [[word for word in row if word != "sticky"] for row in table(kafkas.text)]
    assert (ours.status, sorted(table(ours.text))) == (kafkas.status, sorted(rows))
    return rows


def test_an_application_at_work_is_listed_and_described_and_stays(
    pair: Pair, same: Same, start: Callable[[str], list[Application]]
) -> None:
    start("at-work")
    assert ["at-work", "Stable"] in table(same(f"{GROUPS} --list --state"))
    assert "at-work" in same(f"{GROUPS} --list --state stable").split()
    assert "at-work" not in same(f"{GROUPS} --list --state empty").split()
    listed = table(same("kafka-groups --bootstrap-server {} --list --group-type streams"))
    assert ["at-work", "Streams", "streams"] in listed
    assert ["at-work", SOURCE, "0", "-5"] in describe_alike(pair, "--offsets")
    for what in ("", "--state", "--state --verbose", "--offsets --verbose"):
        describe_alike(pair, what)
    for what in ("--members", "--members --verbose"):
        same(f"{GROUPS} --describe --group at-work {what}")
    assert "1:[0,1]" in same(f"{GROUPS} --describe --group at-work --members")
    reset = f"{GROUPS} --reset-offsets --group at-work --all-input-topics --to-earliest --execute"
    same(reset)
    same(f"{GROUPS} --delete --group at-work")
    assert "at-work" in same(f"{GROUPS} --list").split()


def test_an_application_that_has_stopped_is_reset_and_deleted_with_its_topics(
    pair: Pair, same: Same, start: Callable[[str], list[Application]]
) -> None:
    applications = start("stopped")
    for each in applications:
        each.leave()
    assert ["stopped", "Empty"] in table(same(f"{GROUPS} --list --state"))
    same(f"{GROUPS} --describe --group stopped --offsets")
    same(f"{GROUPS} --reset-offsets --group stopped --input-topic {SOURCE} --to-offset 0 --dry-run")
    same(f"{GROUPS} --reset-offsets --group stopped --input-topic {SOURCE}:1 --to-latest --execute")
    same(f"{GROUPS} --describe --group stopped --offsets")
    same(f"{GROUPS} --delete-offsets --group stopped --input-topic {SOURCE}:1")
    same(f"{GROUPS} --describe --group stopped --offsets")
    deleted = same(f"{GROUPS} --delete --group stopped --group never-seen")
    assert "stopped" in deleted
    assert "stopped" not in same(f"{GROUPS} --list").split()
    same(f"{GROUPS} --describe --group stopped --state")
    for shell in (pair.ours, pair.kafkas):
        with Client(shell.bootstrap_servers) as client:
            found = metadata(client, *applications[0].internal_topics).topics
            assert {topic.error_code for topic in found} <= {
                Code.NONE,
                Code.UNKNOWN_TOPIC_OR_PARTITION,
            }


def test_settings_of_a_streams_group_are_altered_and_described(same: Same) -> None:
    group = "kafka-configs --bootstrap-server {} --entity-type groups --entity-name set-up"
    same(f"{group} --alter --add-config streams.num.standby.replicas=1")
    same(f"{group} --alter --add-config streams.session.timeout.ms=50000")
    assert "streams.num.standby.replicas=1" in same(f"{group} --describe")
    assert "must be less than or equal to 2" in same(
        f"{group} --alter --add-config streams.num.standby.replicas=3"
    )
