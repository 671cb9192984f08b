"""Test that an application is refused whose offsets do not account for its state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from streams import App, StreamsError
from tests.integration.cluster import PARTITIONS, Topics, Worker
from tests.integration.worker import build
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = pytest.mark.sampled(1, by="broker")


def build_app(
    topics: Topics, state: Path, kind: str = "count", guarantee: str = "exactly_once_v2"
) -> App:
    """Build the application that the workers of `new_worker` run."""
    return build(
        topics.application,
        topics.source,
        topics.target,
        kind=kind,
        processing_guarantee=guarantee,
        bootstrap_servers=topics.servers,
        state_dir=state,
    )


def delete_group(topics: Topics) -> None:
    """Delete the group with its offsets, which `offsets.retention.minutes` does after a week."""
    admin = AdminClient({"bootstrap.servers": topics.servers})
    admin.delete_consumer_groups([topics.application])[topics.application].result(HANG_LIMIT_S)


def set_offsets(
    topics: Topics, offset: int, topic: str = "", numbers: Iterable[int] = range(PARTITIONS)
) -> None:
    """Set a topic's offsets, the input's by default, as `kafka-consumer-groups` does."""
    admin = AdminClient({"bootstrap.servers": topics.servers})
    partitions = [TopicPartition(topic or topics.source, n, offset) for n in numbers]
    request = [ConsumerGroupTopicPartitions(topics.application, partitions)]
    answers = admin.alter_consumer_group_offsets(request)
    answers[topics.application].result(HANG_LIMIT_S)


@pytest.mark.parametrize(
    ("lose", "state", "refusal"),
    [
        (delete_group, "state", "has no committed offset for"),
        (delete_group, "elsewhere", "has no committed offset for"),
        (lambda topics: set_offsets(topics, 1), "state", "was not committed by group"),
    ],
    ids=["expired", "expired, on a new machine", "rewound"],
)
def test_offsets_that_do_not_fit_the_state_are_refused(
    topics: Topics,
    new_worker: Callable[..., Worker],
    tmp_path: Path,
    lose: Callable[[Topics], None],
    state: str,
    refusal: str,
) -> None:
    worker = new_worker()
    worker.start()
    topics.load(100)
    topics.wait_for_counts(100)
    worker.finish()
    lose(topics)
    with (
        pytest.raises(StreamsError, match=f"{refusal}.*restore-offsets"),
        build_app(topics, tmp_path / state).start() as running,
    ):
        running.wait_for("RUNNING", HANG_LIMIT_S)
    assert topics.counts() == topics.truth


@pytest.mark.parametrize(
    ("lose", "refusal", "guarantee"),
    [
        (delete_group, "has no committed offset for", "exactly_once_v2"),
        (lambda topics: set_offsets(topics, 0), "offset 0 of", "at_least_once"),
        (lambda topics: set_offsets(topics, 0, "", [1]), "offset 0 of", "exactly_once_v2"),
    ],
    ids=["expired", "rewound", "one partition rewound"],
)
def test_nothing_is_written_to_a_repartition_topic_again(
    topics: Topics,
    new_worker: Callable[..., Worker],
    tmp_path: Path,
    lose: Callable[[Topics], None],
    refusal: str,
    guarantee: str,
) -> None:
    worker = new_worker("words", guarantee=guarantee)
    worker.start()
    topics.load(30)  # of two words each
    assert topics.wait_for_counts(60)["value"] == 30
    worker.finish()
    lose(topics)
    repartition = f"{topics.application}-counts-repartition"
    ends = topics.find_ends(repartition)
    with (
        pytest.raises(StreamsError, match=rf"{refusal}.* {topics.source}\[.*restore-offsets"),
        build_app(topics, tmp_path / "elsewhere", "words", guarantee).start() as running,
    ):
        running.wait_for("RUNNING", HANG_LIMIT_S)
    assert topics.find_ends(repartition) == ends


def test_an_application_without_state_reads_from_where_a_tool_has_put_it(
    topics: Topics, new_worker: Callable[..., Worker], tmp_path: Path
) -> None:
    worker = new_worker("copy")
    worker.start()
    topics.load(30)
    wait_until(lambda: len(list(topics.committed())) == 30, what="the copies")
    worker.finish()
    set_offsets(topics, 0)
    with build_app(topics, tmp_path / "state", "copy").start():
        wait_until(lambda: len(list(topics.committed())) == 60, what="the copies, twice")
