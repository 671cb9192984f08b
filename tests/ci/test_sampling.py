"""Test that samples are repeatable, of the size asked for, and whole where none is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests import sampling


@dataclass(frozen=True)
class Case:
    """Represents a pytest item as sampling sees it."""

    nodeid: str
    count: int | None = None
    by: str | None = None
    team: str = ""
    broker: str = ""
    of_module: str = ""

    @property
    def callspec(self) -> Case:
        return self

    @property
    def params(self) -> dict[str, str]:
        given = {"team": self.team, "broker": self.broker}
        return {name: value for name, value in given.items() if value}

    def iter_markers(self, name: str) -> Iterator[pytest.Mark]:
        if self.count is not None:
            yield pytest.Mark(name, (self.count,), {"by": self.by}, _ispytest=True)
        if self.of_module:
            yield pytest.Mark(name, (1,), {"by": self.of_module}, _ispytest=True)


TEAMS = ("ants", "bees", "cats", "dogs", "eels")
CASES = [
    *(
        Case(f"test_b.py::test_{law}[{team}]", 2, "team", team)
        for law in ("first", "second")
        for team in TEAMS
    ),
    *(Case(f"test_a.py::test_of_many[{number}]", 3) for number in range(20)),
    *(Case(f"test_a.py::test_of_few[{number}]") for number in range(4)),
    *(
        Case(f"test_c.py::test_{number}[{broker}]", 1, "broker", broker=broker)
        for number in range(3)
        for broker in ("embedded", "kafka")
    ),
    Case("test_c.py::test_of_no_broker", 1, "broker"),
    *(
        Case(f"test_d.py::test_{number}[{broker}]", 2, "test", broker=broker)
        for number in range(5)
        for broker in ("embedded", "kafka")
    ),
    *(
        Case(f"test_e.py::test_0[{broker}-{number}]", 2, broker=broker, of_module=by)
        for by in ("broker", "test")
        for broker in (f"{by} one", f"{by} two")
        for number in range(5)
    ),
]


@pytest.fixture
def take(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], list[str]]:
    """Return the names of the cases that are left by a sample."""

    def drop(sample: str | None) -> list[str]:
        monkeypatch.delenv(sampling.VARIABLE, raising=False)
        if sample is not None:
            monkeypatch.setenv(sampling.VARIABLE, sample)
        items: list[Any] = list(CASES)
        gone = sampling.drop_unsampled(items)
        assert {*items, *gone} == set(CASES)
        return [item.nodeid for item in items]

    return drop


def of_many(names: list[str]) -> list[str]:
    return [name for name in names if "test_of_many" in name]


def test_a_sample_leaves_as_many_cases_as_the_mark_says(
    take: Callable[[str | None], list[str]],
) -> None:
    names = take("7")
    assert len(of_many(names)) == 3
    assert len(names) == 3 + 4 + 2 * 2 + (3 + 1) + 2 * 2 + (2 + 2 * 2)


def test_a_sample_is_the_same_each_time_and_another_is_different(
    take: Callable[[str | None], list[str]],
) -> None:
    assert take("7") == take("7")
    assert len({tuple(of_many(take(str(sample)))) for sample in range(5)}) > 1


def test_without_a_sample_every_case_runs(take: Callable[[str | None], list[str]]) -> None:
    assert len(of_many(take(None))) == 20


def test_tests_of_a_module_share_the_values_of_a_parameter_that_are_left(
    take: Callable[[str | None], list[str]],
) -> None:
    for sample in range(5):
        names = take(str(sample))
        of_each = [[n for n in names if f"test_{law}[" in n] for law in ("first", "second")]
        first, second = ([name.partition("[")[2] for name in each] for each in of_each)
        assert len(first) == 2
        assert first == second


def test_a_module_s_cases_run_on_one_broker_where_brokers_are_sampled(
    take: Callable[[str | None], list[str]],
) -> None:
    chosen = set()
    for sample in range(8):
        names = [name for name in take(str(sample)) if "test_c.py" in name]
        assert names.pop() == "test_c.py::test_of_no_broker"
        (broker,) = {name.partition("[")[2] for name in names}
        assert len(names) == 3
        chosen.add(broker)
    assert len(chosen) == 2


def test_a_test_s_own_mark_leaves_so_many_cases_on_the_broker_of_its_module(
    take: Callable[[str | None], list[str]],
) -> None:
    for sample in range(5):
        names = [name for name in take(str(sample)) if "test_e.py" in name]
        of_broker = [name.partition("-")[0] for name in names if "[broker" in name]
        assert len(of_broker) == 2
        assert len(set(of_broker)) == 1


def test_so_many_tests_of_a_module_are_left_with_all_their_cases(
    take: Callable[[str | None], list[str]],
) -> None:
    for sample in range(5):
        names = [name.partition("[") for name in take(str(sample)) if "test_d.py" in name]
        assert len({test for test, _, _ in names}) == 2
        assert len(names) == 2 * 2, "the same tests on both brokers"


def test_a_sample_of_a_pool_keeps_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sampling.VARIABLE, "7")
    steps = sampling.draw_sample("steps", "abcdefgh", 3)
    assert steps == sorted(steps) == sampling.draw_sample("steps", "abcdefgh", 3)
    assert len(steps) == 3
    monkeypatch.delenv(sampling.VARIABLE)
    assert sampling.draw_sample("steps", "abcdefgh", 3) == [*"abcdefgh"]


def test_seeds_come_from_their_pool_and_are_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sampling.VARIABLE, "7")
    seeds = [sampling.draw_seed(name) for name in "abcdefgh"]
    assert seeds == [sampling.draw_seed(name) for name in "abcdefgh"]
    assert set(seeds) <= set(sampling.SEEDS)
    assert len(set(seeds)) > 1


def test_without_a_sample_seeds_are_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(sampling.VARIABLE, raising=False)
    assert sampling.draw_seed("a") != sampling.draw_seed("a")


def test_the_sample_of_a_commit_does_not_change() -> None:
    assert sampling.sample_of_commit() == sampling.sample_of_commit()
