"""Test which faults are one incident: those of one cause, and near each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.log_analysis.chains import ORDER
from streams.log_analysis.report import LogIncidentOutput, analyze_logs
from streams.log_analysis.sources import LogSource
from streams.symptoms.table import SYMPTOMS

OUTAGE = "no broker answers at kafka-1:9092: nothing is lost"
STILL_AWAY = "still no broker answers at kafka-1:9092, for 60 s: refused (see MR-040)"
TIME_OUT = "thread 0 starts over from what is committed: flush: timed out (_TIMED_OUT)"
FENCED = "thread 0 starts over from what is committed: poll: fenced (_FENCED)"
BUSY = "thread 0 has been in the user's function check_line (app.py:15) for 9.0 s"
LEAVES = "a-0 leaves group words: its thread has been busy for 2052 ms, and the limit is 2000"
POISON = "step 'map' can't process lines[0]@7: ValueError"
SAME_TOPIC_POISON = "step 'map' can't process lines[1]@7: ValueError"
OTHER_POISON = "step 'map' can't process orders[0]@7: ValueError"
DAMAGED = "store '{store}' of task 0_0 is rebuilt from its changelog: checksum"
REBALANCE = "state RUNNING -> REBALANCING"
STARTS_OVER = (
    "thread 0 starts over from what is committed: write: ProduceRequest for a-changelog [1] with 9 "
    "message(s) failed: Broker: Invalid timestamp (broker 1 PID{Id:1,Epoch:0}, base seq 0): "
    "current transaction must be aborted (INVALID_TIMESTAMP)"
)
REFUSED = (
    "a stream thread ended: step 'sink' can't write visits[0]@47 to topic 'hours': Broker: Invalid "
    "timestamp (INVALID_TIMESTAMP): its time is 1795998057211 ms, further from now than allowed"
)
EXPELLED = "thread 0 starts over from what is committed: send_offsets: (UNKNOWN_MEMBER_ID)"


def find_incidents(
    path: Path, *lines: tuple[float, str], level: str = "WARNING"
) -> list[LogIncidentOutput]:
    """Analyze a log of messages, each with the second at which it was logged."""
    log = path / "worker.log"
    log.write_text(
        "".join(
            f"2026-11-29 09:{int(at // 60):02d}:{at % 60:06.3f} 7 {level} streams.x: {message}\n"
            for at, message in lines
        )
    )
    return analyze_logs([LogSource(str(log))]).incidents


@pytest.mark.parametrize(
    ("lines", "causes"),
    [
        pytest.param([OUTAGE, TIME_OUT, FENCED], ["MR-040"], id="what follows from an outage"),
        pytest.param([BUSY, LEAVES, FENCED], ["MR-034"], id="what follows from a slow function"),
        pytest.param([FENCED, BUSY], ["MR-063"], id="a cause that is logged late"),
        pytest.param([OUTAGE, POISON], ["MR-040", "MR-072"], id="an outage and a failed record"),
        pytest.param([OUTAGE, BUSY], ["MR-040", "MR-063"], id="an outage and a slow function"),
        pytest.param([FENCED, POISON], ["MR-010", "MR-072"], id="a zombie and a failed record"),
        pytest.param([POISON, OTHER_POISON], ["MR-072"] * 2, id="records of two topics"),
        pytest.param(
            [POISON, SAME_TOPIC_POISON], ["MR-072"], id="records of two partitions of a topic"
        ),
        pytest.param(
            [DAMAGED.format(store="a"), DAMAGED.format(store="b")],
            ["MR-020"] * 2,
            id="two damaged stores",
        ),
        pytest.param(
            [OUTAGE, DAMAGED.format(store="a"), DAMAGED.format(store="b")],
            ["MR-040"],
            id="two stores that follow from an outage",
        ),
    ],
)
def test_faults_of_a_minute_are_apart_unless_one_follows_from_the_other(
    lines: list[str], causes: list[str], tmp_path: Path
) -> None:
    found = find_incidents(tmp_path, *((5.0 * number, each) for number, each in enumerate(lines)))
    assert [each.cause for each in found] == causes


def test_each_of_two_mixed_faults_has_its_own_lines(tmp_path: Path) -> None:
    mixed = [OUTAGE, POISON, TIME_OUT, POISON, FENCED]
    outage, poison = find_incidents(tmp_path, *enumerate(mixed))
    assert (outage.cause, outage.events["broker away"]) == ("MR-040", 1)
    assert outage.events["fencing"] == 1
    assert poison.events["failed record"] == 2
    assert {line.code for line in poison.lines} <= {"MR-072", "MR-013"}


def test_an_outage_that_is_logged_each_minute_is_one_incident(tmp_path: Path) -> None:
    minutes = [(60.0 + 61.5 * number, STILL_AWAY) for number in range(20)]
    [incident] = find_incidents(tmp_path, (0.0, OUTAGE), *minutes)
    assert incident.events == {"broker away": 21}


def test_the_same_fault_after_a_pause_is_another_incident(tmp_path: Path) -> None:
    assert len(find_incidents(tmp_path, (0.0, FENCED), (90.0, FENCED))) == 2


def test_a_cause_that_comes_much_later_explains_nothing_before_it(tmp_path: Path) -> None:
    found = find_incidents(tmp_path, (0.0, FENCED), (50.0, OUTAGE))
    assert [each.cause for each in found] == ["MR-010", "MR-040"]


def test_rebalances_belong_to_the_last_fault(tmp_path: Path) -> None:
    poison, outage = find_incidents(tmp_path, (0.0, POISON), (10.0, OUTAGE), (11.0, REBALANCE))
    assert "rebalance" not in poison.events
    assert outage.events["rebalance"] == 1


def test_the_order_of_causes_has_codes_that_exist() -> None:
    assert len(set(ORDER)) == len(ORDER)
    assert {*ORDER} <= {each.code for each in SYMPTOMS}


def test_a_refused_timestamp_explains_that_a_thread_starts_over(tmp_path: Path) -> None:
    (found,) = find_incidents(tmp_path, (0, STARTS_OVER), (2, REFUSED))
    assert found.cause == "MR-073"
    assert {line.code for line in found.lines} == {"MR-073"}


def test_a_member_that_a_broker_does_not_hear_has_stood_still(tmp_path: Path) -> None:
    broker = tmp_path / "broker.log"
    broker.write_text(
        "[2026-11-29 09:00:00,000] INFO [GroupCoordinator id=1] Member a-0 in group words has "
        "failed, removing it from the group. (org.apache.kafka.coordinator.group.Coordinator)\n"
    )
    (found,) = find_incidents(tmp_path, (5, EXPELLED))
    assert found.cause == "MR-021"
    assert "stood still" not in found.explanation
    log = LogSource(str(tmp_path / "worker.log"))
    (found,) = analyze_logs([LogSource(str(broker)), log]).incidents
    assert found.cause == "MR-021"
    assert "no heartbeat" in found.explanation
    assert "stood still (stopped by a signal" in found.explanation


def test_time_outs_between_a_broker_and_its_controller_are_of_no_application(
    tmp_path: Path,
) -> None:
    broker = tmp_path / "broker.log"
    broker.write_text(
        "[2026-11-29 09:00:00,000] ERROR [BrokerLifecycleManager id=1] Unable to send broker "
        "heartbeat for BrokerHeartbeatRequestData(). Retrying. (org.apache.kafka.server.X)\n"
        "org.apache.kafka.common.errors.TimeoutException: no answer of the controller\n"
    )
    assert analyze_logs([LogSource(str(broker))]).incidents == []
