"""Run the worker of the rebalance benchmark with a planted bug (see `tests.crashes.bugs`).

python -m tests.integration.planted_rebalance_worker BUG ARGUMENTS
"""

from __future__ import annotations

import sys

from benchmarks.rebalance_worker import main
from tests.crashes.bugs import BUGS

if __name__ == "__main__":
    BUGS[sys.argv.pop(1)]()
    main()
