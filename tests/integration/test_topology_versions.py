"""Test workers of one application id with different topologies: they share what they can."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.brokers import IN_CI
from tests.integration.cluster import Command, Topics
from tests.processes import wait_until

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]

HEAD = """
from streams import App, serdes
NAME = "{name}"
app = App(
    NAME, commit_interval_ms=50, heartbeat_interval_ms=200, session_timeout_ms=10_000,
    metadata_max_age_ms=1_000,
)
def read(topic):
    return app.stream(NAME + "-" + topic, key=serdes.string, value=serdes.string)
def count(topic):
    counts = read(topic).group_by_key().count(store="counts-of-" + topic)
    counts.to_stream().to(NAME + "-out")
def rename(topic):
    read(topic).group_by_key().count(store="renamed").to_stream().to(NAME + "-out")
def copy(topic):
    read(topic).map_values(str).to(NAME + "-out")
def count_values(store):
    by_value = read("in").group_by(lambda k, v: v, key=serdes.string)
    by_value.count(store=store).to_stream().to(NAME + "-out")
"""


class Application:
    """Represents versions of one application, as commands on one state directory."""

    def __init__(self, topics: Topics, directory: Path, exits: ExitStack) -> None:
        self.topics = topics
        self._directory = directory
        self._exits = exits
        self._versions = 0
        self.id = topics.application
        self.guarantee = "exactly_once_v2"
        topics.create(f"{self.id}-other")

    def start(self, *lines: str, handler: str = "shutdown_client") -> Command:
        """Start a worker of the version whose steps are `lines`."""
        self._versions += 1
        module = f"version{self._versions}"
        source = HEAD.format(name=self.topics.application) + "\n".join(lines) + "\n"
        (self._directory / f"{module}.py").write_text(source)
        state = self._directory / "state"
        run = ["-m", "streams", "run", f"{module}:app", "-v"]
        options = ["--bootstrap-servers", self.topics.servers, "--state-dir", str(state)]
        options += ["--processing-guarantee", self.guarantee]
        options += ["--uncaught-exception-handler", handler]
        command = Command([*run, *options], self._directory)
        self._exits.callback(command.close)
        return command

    def wait_for_tasks(self, worker: Command, begin: int = 0) -> None:
        """Wait until a worker runs tasks."""
        self.wait_for_line(worker, "runs tasks", begin)

    def wait_for_line(self, worker: Command, line: str, begin: int = 0) -> None:
        wait_until(lambda: line in worker.log_since(begin), what=worker.log_tail)

    def load(self, topic: str, keys: str) -> None:
        """Write one record a key, spread over the partitions."""
        self.topics.load_keys(topic, keys)

    def wait_for_keys(self, expected: Collection[str]) -> None:
        """Wait until each of the keys has come out once or more."""
        self.topics.wait_for_keys(expected)


@pytest.fixture
def application(topics: Topics, tmp_path: Path) -> Iterator[Application]:
    with ExitStack() as exits:
        yield Application(topics, tmp_path, exits)


IN, OTHER = "abcdefghijkl", "mnopqrstuvwx"
"""Keys of the two inputs, enough that each partition has some."""


def test_workers_with_other_inputs_process_all_of_their_own_and_say_that_they_differ(
    application: Application,
) -> None:
    first = application.start('copy("in")')
    application.wait_for_tasks(first)
    second = application.start('copy("other")')
    application.wait_for_tasks(second)
    application.load("in", IN)
    application.load("other", OTHER)
    application.wait_for_keys(IN + OTHER)
    for worker in (first, second):
        application.wait_for_line(worker, "runs 2 versions of the topology")
        worker.stop()
        assert worker.status == 0
        assert "starts over" not in worker.log_since(0)


def test_workers_with_the_same_inputs_and_other_steps_share_them_and_say_so(
    application: Application,
) -> None:
    first = application.start('copy("in")')
    application.wait_for_tasks(first)
    second = application.start('read("in").filter(lambda k, v: True).to(NAME + "-out")')
    application.wait_for_tasks(second)
    application.load("in", IN)
    application.wait_for_keys(IN)
    for worker in (first, second):
        application.wait_for_line(worker, "runs 2 versions of the topology")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("handler", ["shutdown_client", "shutdown_application", "replace_thread"])
def test_a_worker_whose_stores_differ_is_refused_once_and_the_group_goes_on(
    application: Application, handler: str
) -> None:
    first = application.start('count("in")')
    application.wait_for_tasks(first)
    begin = first.log_path.stat().st_size
    second = application.start('rename("in")', handler=handler)
    assert second.wait_for_end() == 2, second.log_tail()
    refused = second.log_since(0)
    assert "counts-of-in" in refused
    assert "choose another application id" in refused
    assert refused.count("-> REBALANCING") == 1
    application.wait_for_line(first, "was refused", begin)
    application.wait_for_line(first, "counts-of-in", begin)
    application.load("in", IN)
    application.wait_for_keys(IN)
    first.stop()
    assert first.status == 0
    application.wait_for_tasks(application.start('rename("in")'))  # nothing is left of the refusal


def test_a_worker_that_counts_by_another_key_in_another_store_is_refused(
    application: Application,
) -> None:
    """Refuse the worker: what the others process would never come to its repartition topic."""
    first = application.start('count_values("of-values")')
    application.wait_for_tasks(first)
    second = application.start('count_values("renamed")')
    assert second.wait_for_end() == 2, second.log_tail()
    assert "renamed-repartition' in the refused one, which is read into" in second.log_since(0)
    application.load("in", IN)
    application.wait_for_keys([f"value of {key}" for key in IN])


def test_a_worker_that_counts_by_another_key_beside_takes_over_what_the_other_leaves(
    application: Application,
) -> None:
    first = application.start('copy("in")')
    application.wait_for_tasks(first)
    second = application.start('copy("in")', 'count_values("of-values")')
    application.wait_for_tasks(second)
    application.load("in", IN)
    application.wait_for_keys(IN)
    first.stop()
    application.wait_for_line(second, "runs tasks 0_0, 0_1, 0_2")
    application.load("in", IN)
    application.wait_for_keys([*IN, *(f"value of {key}" for key in IN)])


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("kind", "guarantee"),
    [("count", "exactly_once_v2"), ("copy", "exactly_once_v2"), ("count", "exactly_once")],
)
def test_no_input_is_without_an_owner_while_two_lines_are_swapped_in_a_rolling_restart(
    application: Application, kind: str, guarantee: str
) -> None:
    application.guarantee = guarantee
    lines = [f'{kind}("in")', f'{kind}("other")']
    old = [application.start(*lines), application.start(*lines)]
    for worker in old:
        application.wait_for_tasks(worker)
    application.load("in", IN[:4])
    application.load("other", OTHER[:4])
    application.wait_for_keys(IN[:4] + OTHER[:4])
    old[0].stop()
    new = application.start(*reversed(lines))
    application.wait_for_tasks(new)
    application.load("in", IN[4:8])
    application.load("other", OTHER[4:8])
    application.wait_for_keys(IN[:8] + OTHER[:8])
    assert all("starts over" not in each.log_since(0) for each in (old[1], new))
    old[1].stop()
    newer = application.start(*reversed(lines))
    application.wait_for_tasks(newer)
    application.load("in", IN)
    application.load("other", OTHER)
    application.wait_for_keys(IN + OTHER)
    if kind == "count":
        expected = dict.fromkeys(IN[:8] + OTHER[:8], 2) | dict.fromkeys(IN[8:] + OTHER[8:], 1)
        wait_until(
            lambda: application.topics.counts() == expected,
            what=lambda: str(application.topics.counts()),
        )


def test_a_killed_worker_that_comes_back_with_its_lines_swapped_has_its_inputs_at_once(
    application: Application,
) -> None:
    """Check that, as a static member, it is answered with what the version before was given."""
    lines = ['count("in")', 'count("other")']
    old = application.start(*lines)
    application.wait_for_tasks(old)
    application.load("in", IN)
    application.load("other", OTHER)
    application.wait_for_keys(IN + OTHER)
    old.kill()
    new = application.start(*reversed(lines))
    application.wait_for_tasks(new)
    assert "has another topology than before: it joins anew" in new.log_since(0)
    application.load("in", IN)
    application.load("other", OTHER)
    expected = dict.fromkeys(IN + OTHER, 2)
    wait_until(
        lambda: application.topics.counts() == expected,
        what=lambda: str(application.topics.counts()),
    )


def test_a_renamed_store_is_told_of_once(application: Application) -> None:
    for lines, told in ((['count("in")'], 0), (['rename("in")'], 1), (['rename("in")'], 0)):
        worker = application.start(*lines)
        application.wait_for_tasks(worker)
        worker.stop()
        said = worker.log_since(0)
        assert said.count("begins empty") == told, said
        if told:
            assert f"store 'renamed' begins empty, and changelog '{application.id}-counts" in said
            assert f"{application.id}/*_*/counts-of-in is left" in said
