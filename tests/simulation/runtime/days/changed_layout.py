"""Start a version that keeps windows for another time, when the changelog has lost records.

The stores are the only copy of what is gone then. The new version can't use them, and can't rebuild
them: it is refused by name. It leaves them as they are, so that the former version goes on with
them, and its results are as if nothing had happened (docs/decisions/0075).
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from tests.simulation.runtime.days.steps import (
    CutChangelog,
    Pass,
    Rest,
    StopAll,
    TryVersion,
    feed_some,
)
from tests.simulation.runtime.scenario import Start
from tests.simulation.steps import Step

_HOUR_MS = 3_600_000
KEPT_LONG: dict[str, Any] = {
    "kind": "suppress",
    "kept_ms": 12 * _HOUR_MS,
    "persistent": True,
    "workers": 1,
    "standbys": 0.0,
}
"""The settings of the story: no window expires in it, which a changelog may lose.

The layout of this kind's store follows from how long it keeps windows; that of `closing` does not.
There is one worker, so that no task begins where its store is not, which would be refused too."""


def change_layout(random: Random) -> Iterator[Step[Any]]:
    """Cut the changelog, start a version of another retention, and go back to the former one."""
    yield Step(800, feed_some(random))
    yield Step(100, feed_some(random))
    yield Step(100, Rest())
    yield Step(50, StopAll())  # a store that a kill leaves behind has lost what is cut
    yield Step(1_500, Pass(random.choice((0.5, 2)), stands=True))
    yield Step(0, CutChangelog(random.choice((0.3, 1.0))))
    yield Step(0, TryVersion(random.choice((2, 48)) * _HOUR_MS))
    yield Step(random.choice((50, 1_500)), Start(0))
    yield Step(500, feed_some(random))
