"""Test which levels UpdateFeatures can finalise, and that clients see them at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from coordinator.errors import Code
from tests.brokers import Broker
from tests.conformance.calls import eventually
from tests.conformance.wire import Api, Client, plain

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
TRANSACTION, METADATA = "transaction.version", "metadata.version"
METADATA_LEVELS = {"embedded": 30, "kafka": 33}
"""The highest level, which is finalised: our broker is a Kafka 4.3 to its clients."""
NEXT, LAST, FORMER = 1_001, 1_000, 999
"""Stand for levels of `metadata.version`: the highest of the broker, and those beside it."""
Update = tuple[str, int, int]


def update(client: Client, *updates: Update, version: int = 2, validate_only: bool = True) -> Any:
    asked = [
        {
            "feature": name,
            "max_version_level": level,
            **({"upgrade_type": kind} if version else {"allow_downgrade": kind != UPGRADE}),
        }
        for name, level, kind in updates
    ]
    only = {"validate_only": validate_only} if version else {}
    return plain(client.send(Api.UPDATE_FEATURES, version, feature_updates=asked, **only))


def finalised(client: Client) -> tuple[int, int]:
    """Return the epoch, and the level of `transaction.version`."""
    answer = client.send(
        Api.API_VERSIONS, 4, client_software_name="conformance", client_software_version="1"
    )
    levels = {each.name: each.max_version_level for each in answer.finalized_features}
    return answer.finalized_features_epoch, levels.get(TRANSACTION, 0)


@pytest.fixture
def level_of_new_clusters(client: Client) -> Iterator[None]:
    """Set `transaction.version` to 2 again when the case ends."""
    yield
    assert update(client, (TRANSACTION, 2, UPGRADE), validate_only=False)["error_code"] == 0
    assert eventually(lambda: finalised(client)[1], 2) == 2


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.usefixtures("level_of_new_clusters")
def test_another_level_is_told_to_clients_with_a_higher_epoch(client: Client, version: int) -> None:
    epoch, before = finalised(client)
    assert before == 2
    downgrade = (TRANSACTION, 1, SAFE_DOWNGRADE)
    answer = update(client, downgrade, version=version, validate_only=False)
    done = {"feature": TRANSACTION, "error_code": Code.NONE, "error_message": "NONE"}
    results = {"results": [done]} if version < 2 else {}
    assert answer == {"error_code": Code.NONE, "error_message": None, **results}
    assert eventually(lambda: finalised(client)[1], 1) == 1
    assert finalised(client)[0] > epoch


def test_version_0_can_t_lower_a_level(client: Client) -> None:
    refused = update(client, (TRANSACTION, 1, SAFE_DOWNGRADE), version=0)
    assert refused["error_code"] == Code.INVALID_UPDATE_VERSION


def check_unchanged(client: Client, broker: Broker, before: tuple[int, int]) -> None:
    """Check that epoch and level are as before.

    Real Kafka's epoch, an offset of its metadata log, grows by itself, and is not checked.
    """
    (epoch, level), (epoch_now, level_now) = before, finalised(client)
    assert level_now == level
    assert epoch_now == epoch or broker.kind != "embedded"


def test_validate_only_changes_nothing(client: Client, broker: Broker) -> None:
    before = finalised(client)
    assert update(client, (TRANSACTION, 0, SAFE_DOWNGRADE))["error_code"] == Code.NONE
    check_unchanged(client, broker, before)


ALL = "The update failed for all features since the following feature had an error: "
INVALID = "Invalid update version {} for feature {}. "
LOWER = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe "
    "or unsafe downgrade."
)
NOT_LOWER = "Unsupported metadata.version downgrade from {last} to {}. "


def resolve_level(broker: Broker, asked: Update) -> Update:
    """Put the broker's own levels in the place of `NEXT`, `LAST` and `FORMER`."""
    name, level, kind = asked
    if name == METADATA:
        if broker.kind not in METADATA_LEVELS:
            pytest.skip("what it supports is not known")
        level += METADATA_LEVELS[broker.kind] - LAST
    return name, level, kind


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ((TRANSACTION, 1, UPGRADE), INVALID + LOWER),
        ((TRANSACTION, 3, UPGRADE), INVALID + "Local controller 1 only supports versions 0-2"),
        ((TRANSACTION, -1, UPGRADE), INVALID + "A feature version cannot be less than 0."),
        (
            (TRANSACTION, 1, 0),
            INVALID + "The controller does not support the given upgrade type.",
        ),
        (("no.such", 1, UPGRADE), INVALID + "Local controller 1 does not support this feature."),
        (("no.such", 0, SAFE_DOWNGRADE), INVALID + "Feature no.such not found."),
        ((METADATA, NEXT, UPGRADE), INVALID + "Local controller 1 only supports versions 7-{last}"),
        ((METADATA, FORMER, UPGRADE), INVALID + LOWER),
        (
            (METADATA, FORMER, SAFE_DOWNGRADE),
            NOT_LOWER + "Refusing to perform the requested downgrade because it might delete "
            "metadata information.",
        ),
        (
            (METADATA, FORMER, UNSAFE_DOWNGRADE),
            NOT_LOWER + "Unsafe metadata downgrade is not supported in this version.",
        ),
    ],
)
def test_a_level_that_can_t_be_is_refused_with_the_reason(
    client: Client, broker: Broker, asked: Update, message: str
) -> None:
    name, level, kind = resolve_level(broker, asked)
    told = message.format(level, name, last=METADATA_LEVELS.get(broker.kind))
    assert update(client, (name, level, kind)) == {
        "error_code": Code.INVALID_UPDATE_VERSION,
        "error_message": ALL + told,
    }


@pytest.mark.parametrize("version", [0, 1])
def test_one_level_that_can_t_be_keeps_all_from_being_finalised(
    client: Client, broker: Broker, version: int
) -> None:
    before = finalised(client)
    updates = [(TRANSACTION, 1, SAFE_DOWNGRADE), ("no.such", 1, UPGRADE)]
    refused = update(client, *updates, version=version, validate_only=False)
    assert (refused["error_code"], refused["results"]) == (Code.INVALID_UPDATE_VERSION, [])
    check_unchanged(client, broker, before)


@pytest.mark.parametrize("asked", [(TRANSACTION, 2, SAFE_DOWNGRADE), (METADATA, LAST, UPGRADE)])
def test_the_level_that_is_finalised_can_be_asked_for(
    client: Client, broker: Broker, asked: Update
) -> None:
    assert update(client, resolve_level(broker, asked))["error_code"] == Code.NONE
    assert update(client)["error_code"] == Code.NONE


def test_a_level_and_its_epoch_are_there_after_kill_9(
    broker: Broker, connect: Callable[[], Client]
) -> None:
    if broker.kind != "embedded":
        pytest.skip("a broker that is not ours is not killed for this")
    downgrade = (TRANSACTION, 1, SAFE_DOWNGRADE)
    assert update(connect(), downgrade, validate_only=False)["error_code"] == Code.NONE
    before = finalised(connect())
    broker.kill()
    broker.restart()
    client = connect()
    assert finalised(client) == before
    assert update(client, (TRANSACTION, 2, UPGRADE), validate_only=False)["error_code"] == 0
