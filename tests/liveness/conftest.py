"""Provide the fixtures of the tests of liveness."""

from tests.integration.conftest import topics

__all__ = ["topics"]
