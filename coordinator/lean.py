"""Imported by the broker process before anything else: what a broker has no use for stays out.

Where hypothesis is installed, kio imports it to register strategies for its types. That is for
tests, and would be a third of the time until the broker listens.
"""

from __future__ import annotations

import sys
from typing import Any

_modules: dict[str, Any] = sys.modules
_modules.setdefault("hypothesis", None)  # as if it weren't installed
