"""Import kio without hypothesis, which it would import wherever that is installed.

kio registers strategies for its types with it, which nobody uses: an application whose environment
has hypothesis for its tests would take a quarter longer to import.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

_HYPOTHESIS = "hypothesis"


def import_kio() -> None:
    """Import the module of kio that looks for hypothesis, and let it find none.

    Does nothing where hypothesis has been imported, as in a test. It can be imported afterwards.
    """
    modules: dict[str, Any] = sys.modules
    if _HYPOTHESIS in modules:
        return
    modules[_HYPOTHESIS] = None  # as if it weren't installed
    try:
        importlib.import_module("kio.static.primitive")
    finally:
        del modules[_HYPOTHESIS]
