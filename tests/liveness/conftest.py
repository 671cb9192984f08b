"""What the tests of liveness are given."""

from tests.integration.conftest import topics

__all__ = ["topics"]
