"""Call the functions of registered queries, and make JSON of their results.

Results and arguments are what JSON has, here as well as from another worker: a result is the same
wherever the task is.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from streams.errors import ConfigError, QueryFailed, UserError
from streams.topology.store_queries import StoreQuery

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoreCall:
    """Represents a registered query with its arguments."""

    query: StoreQuery
    arguments: Mapping[str, Any]

    def check_arguments(self) -> None:
        """Raise ConfigError for arguments that the function does not take."""
        try:
            signature = inspect.signature(self.query.function)
        except (TypeError, ValueError):  # some built-in functions have none
            return
        try:
            signature.bind("store", **self.arguments)
        except TypeError as error:
            raise ConfigError(
                f"query {self.query.name!r} can't be called with {dict(self.arguments)}: {error}"
            ) from None

    def call_function(self, view: Any) -> Any:
        """Return the function's result for a view of one task's store. Raises QueryFailed.

        Errors of the store, such as StoreUnavailable, are raised as they are.
        """
        return self._call_user_code("", self.query.function, view)

    def merge_results(self, results: Sequence[Any]) -> Any:
        """Return one result of those of all tasks. Raises QueryFailed."""
        return self._call_user_code("merge of ", self.query.merge, results)

    def _call_user_code(self, part: str, function: Callable[..., Any], given: Any) -> Any:
        """Return the result of a function of the user, as JSON has it."""
        try:
            return orjson.loads(orjson.dumps(function(given, **self.arguments)))
        except UserError:
            raise
        except Exception as error:
            failed = f"{part}query {self.query.name!r} has failed: {type(error).__name__}: {error}"
            log.warning("%s", failed, exc_info=True)
            raise QueryFailed(failed) from error
