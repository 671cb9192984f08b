"""Bugs that only applications with a model of their own show, planted as those of `bugs` are."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from streams.dsl import foreign_key as foreign_key_steps
from streams.operators import foreign_key
from streams.topology.nodes import Binding, Operator
from tests.simulation.bugs import replaced
from tests.simulation.runtime.bugs import Planted
from tests.simulation.runtime.checkers import Results
from tests.simulation.world import World


def rows_joined_that_wait_for_the_commit(world: World) -> AbstractContextManager[None]:
    """A foreign-key join looks its tables up through their caches: at what nobody was told yet."""

    def make(original: Any) -> Any:
        return lambda at, **_: at

    return replaced(foreign_key, "replace", make)


def overtaken_answers_asked_no_more(world: World) -> AbstractContextManager[None]:
    """An inner foreign-key join drops an answer that was overtaken, and leaves it at that."""

    def make(original: Any) -> Any:
        def resolve(*arguments: Any, asking: str | None, **rest: Any) -> Operator:
            operator = original(*arguments, asking=asking, **rest)

            def bind(at: Binding) -> Any:
                children = {**at.children, asking: _unheard} if asking else at.children
                return operator(replace(at, children=children))

            return bind

        return resolve

    return replaced(foreign_key_steps, "resolve", make)


def _unheard(*asked: Any) -> None:
    pass


FOREIGN = {"kind": "foreign", "guarantee": "exactly_once_v2", "late_partitions": 0.7}
APPLICATION_BUGS = (
    Planted(
        rows_joined_that_wait_for_the_commit,
        (Results,),
        "kills",
        FOREIGN | {"caching": True, "commit_interval_ms": 400},
    ),
    Planted(overtaken_answers_asked_no_more, (Results,), "network", FOREIGN | {"caching": False}),
)
