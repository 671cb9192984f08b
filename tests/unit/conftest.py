"""Properties are judged by what they say, not by how long an example takes on a busy machine."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("without a clock", deadline=None)
settings.load_profile("without a clock")
