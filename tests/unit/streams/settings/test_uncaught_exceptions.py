from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streams.errors import ApplicationShutdown, ConfigError, StreamsError, TopologyRefused
from streams.membership.protocol import (
    AssignmentInfo,
    SubscriptionInfo,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from streams.runtime.assigning.assignment import StreamsPartitionAssignor
from streams.settings.config import load_config
from streams.settings.uncaught_exceptions import (
    ReplacementBackOff,
    UncaughtExceptionResponse,
    call_uncaught_handler,
    parse_uncaught_handler,
)
from streams.topology.declared import DeclaredTopology
from tests.unit.streams.runtime.world import World, build_counting_topology


@pytest.mark.parametrize("name", ["replace_thread", "shutdown_client", "shutdown_application"])
def test_a_handler_is_an_answer_or_a_function_that_gives_one(name: str) -> None:
    error = StreamsError("gone")
    assert call_uncaught_handler(parse_uncaught_handler(name), error) is UncaughtExceptionResponse(
        name
    )
    assert call_uncaught_handler(
        parse_uncaught_handler(lambda met: name if met is error else None), error
    ) is UncaughtExceptionResponse(name)


def test_a_handler_that_fails_or_answers_nonsense_ends_the_worker(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def failing(_: Exception) -> str:
        raise RuntimeError("in the handler")

    nonsense = (
        "uncaught_exception_handler returned 'explode', not one of "
        "replace_thread, shutdown_client, shutdown_application: the worker ends"
    )
    for handler, said in ((failing, "in the handler"), (lambda _: "explode", nonsense)):
        assert (
            call_uncaught_handler(parse_uncaught_handler(handler), StreamsError("x"))
            is UncaughtExceptionResponse.SHUTDOWN_CLIENT
        )
        assert said in caplog.text
        assert ("Traceback" in caplog.text) == (handler is failing)
        caplog.clear()


@pytest.mark.parametrize("error", [ApplicationShutdown("by another"), TopologyRefused("why")])
@pytest.mark.parametrize("handler", ["replace_thread", "shutdown_application"])
def test_the_shutdown_of_the_application_or_a_refusal_is_not_passed_on_nor_evaded(
    error: StreamsError, handler: str
) -> None:
    assert (
        call_uncaught_handler(parse_uncaught_handler(handler), error)
        is UncaughtExceptionResponse.SHUTDOWN_CLIENT
    )


@pytest.mark.parametrize("given", ["restart", 7, UncaughtExceptionResponse])
def test_a_setting_that_is_no_handler_is_refused_by_name(given: object) -> None:
    with pytest.raises(ConfigError, match=r"handler.*is not one of 'replace_thread', 'shut"):
        load_config(uncaught_exception_handler=given)


def test_the_handler_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_UNCAUGHT_EXCEPTION_HANDLER", "replace_thread")
    assert load_config().uncaught_exception_handler is UncaughtExceptionResponse.REPLACE_THREAD


def test_replacing_waits_twice_as_long_each_time_until_a_thread_runs_steadily() -> None:
    back_off = ReplacementBackOff()
    assert [back_off.take_wait_s(1) for _ in range(8)] == [
        0.5,
        1,
        2,
        4,
        8,
        16,
        30,
        30,
    ]
    assert back_off.take_wait_s(3_600) == 0.5


def test_who_asks_for_the_shutdown_of_all_says_why_through_the_leader() -> None:
    asking, others = (
        decode_subscription(encode_subscription(["in"], told, DeclaredTopology("t", {}, {})))
        for told in (SubscriptionInfo((), "disk is full"), SubscriptionInfo(("0_0",)))
    )
    planner = StreamsPartitionAssignor.__new__(
        StreamsPartitionAssignor
    )  # It makes no request: no topic is created, no task assigned.
    plan = planner.assign_group({"a": others, "b": asking})
    assert plan == dict.fromkeys("ab", AssignmentInfo((), (), "disk is full"))
    assert decode_assignment(encode_assignment(plan["a"])).shutdown == "disk is full"


def test_a_thread_that_is_told_of_the_shutdown_ends_with_the_reason(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path)
    world.member.assign(AssignmentInfo((), (), "disk is full"))
    with pytest.raises(ApplicationShutdown, match="disk is full"):
        world.run_until(lambda: False)


@pytest.mark.parametrize(
    ("replaced", "call"),
    [(lambda error: True, "end_without_leaving_group"), (lambda error: False, "leave_group")],
)
def test_a_thread_that_is_replaced_hands_its_place_in_the_group_over(
    tmp_path: Path, replaced: Callable[[Exception], bool], call: str
) -> None:
    world = World(build_counting_topology(then=lambda count: 1 // 0), tmp_path, replaced=replaced)
    world.load("x")
    with pytest.raises(StreamsError, match="ZeroDivisionError"):
        world.run_until(lambda: False)
    assert world.script.filter_calls("member.leave_group", "member.end_without_leaving_group") == [
        f"member.{call}"
    ]


def test_a_thread_that_is_refused_leaves_the_group(tmp_path: Path) -> None:
    """Test that a refused thread leaves its group.

    Otherwise the next rebalance of the others would wait for its session to expire.
    """

    def refuse(assigned: AssignmentInfo) -> AssignmentInfo:
        raise TopologyRefused("other stores")

    world = World(build_counting_topology(), tmp_path, adopt=refuse)
    with pytest.raises(TopologyRefused):
        world.run_until(lambda: False)
    assert world.script.filter_calls("member.leave_group", "member.end_without_leaving_group") == [
        "member.leave_group"
    ]
