"""Keep the broker process from importing hypothesis, which kio would make it import.

Where hypothesis is installed, kio imports it to register strategies for its types. Only tests need
them, and the import would take a third of the time until the broker listens. Import this module
before any other.
"""

from __future__ import annotations

import sys
from typing import Any

_modules: dict[str, Any] = sys.modules
_modules.setdefault("hypothesis", None)  # as if it weren't installed
