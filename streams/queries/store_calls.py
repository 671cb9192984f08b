"""Call the functions of registered queries, and make JSON of their results.

Results and arguments are what JSON has, here as well as from another worker: a result is the same
wherever the task is.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any
from urllib.parse import quote

import orjson

from streams.errors import ConfigError, QueryFailed, UserError
from streams.topology.store_queries import StoreQuery

log = logging.getLogger(__name__)

ARGUMENTS_SIZE_MAX = 12_000
"""The bytes that arguments may have in a URL: a request of 16 KiB may be refused."""


@dataclass(frozen=True, slots=True)
class StoreCall:
    """Represents a registered query with its arguments, which are kept as JSON.

    Each call gets arguments of its own, those that another worker would get. Raises ConfigError for
    arguments that JSON does not have, or that are too long to be sent.
    """

    query: StoreQuery
    arguments: InitVar[Mapping[str, Any]]
    arguments_json: bytes = field(init=False)

    def __post_init__(self, arguments: Mapping[str, Any]) -> None:
        try:
            encoded = orjson.dumps(arguments)
        except TypeError as error:
            raise ConfigError(
                f"query {self.query.name!r} can't be called with {arguments!r:.200}: {error}; "
                "arguments are what JSON has"
            ) from None
        if (size := len(quote(encoded, safe=""))) > ARGUMENTS_SIZE_MAX:
            raise ConfigError(
                f"the arguments of query {self.query.name!r} have {size} bytes in a URL, and may "
                f"have {ARGUMENTS_SIZE_MAX}: ask in several queries"
            )
        object.__setattr__(self, "arguments_json", encoded)

    def load_arguments(self) -> dict[str, Any]:
        """Return arguments that a function may change."""
        loaded: dict[str, Any] = orjson.loads(self.arguments_json)
        return loaded

    def check_arguments(self) -> None:
        """Raise ConfigError for arguments that the function, or the merge, does not take."""
        self._check_function("", self.query.function)
        self._check_function("merge of ", self.query.merge)

    def _check_function(self, part: str, function: Callable[..., Any]) -> None:
        """Raise ConfigError for arguments that a function of the user does not take."""
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # some built-in functions have none
            return
        arguments = self.load_arguments()
        try:
            signature.bind("store", **arguments)
        except TypeError as error:
            raise ConfigError(
                f"{part}query {self.query.name!r} can't be called with {arguments!r:.200}: {error}"
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
            return orjson.loads(orjson.dumps(function(given, **self.load_arguments())))
        except UserError:
            raise
        except Exception as error:
            failed = f"{part}query {self.query.name!r} has failed: {type(error).__name__}: {error}"
            log.warning("%s", failed, exc_info=True)
            raise QueryFailed(failed) from error
