"""Provide the fixture `topology_driver`: drivers that are closed when the test ends.

    def test_words_are_counted(topology_driver):
        driver = topology_driver(app, partitions={"lines": 4})
        driver.topic("lines").pipe("k", "to be or not to be")

Nothing of it is imported before a test asks for it: so this module lies beside the packages, since
to import one of `streams` is to import all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from streams.testing.driver import TopologyTestDriver


@pytest.fixture
def topology_driver() -> Iterator[Callable[..., TopologyTestDriver]]:
    """Return a function that makes a TopologyTestDriver from the arguments of its constructor."""
    from streams.testing.driver import TopologyTestDriver

    with ExitStack() as drivers:

        def make(*given: Any, **named: Any) -> TopologyTestDriver:
            return drivers.enter_context(TopologyTestDriver(*given, **named))

        yield make
