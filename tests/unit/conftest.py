"""Properties are judged by what they say, not by how long an example takes on a busy machine."""

from __future__ import annotations

from hypothesis import settings

from tests.brokers import in_ci

settings.register_profile("desk", deadline=None, max_examples=20)
settings.register_profile("ci", deadline=None, max_examples=100)
settings.load_profile("ci" if in_ci() else "desk")
