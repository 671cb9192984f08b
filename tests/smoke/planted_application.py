"""Run the application of Kafka's smoke test with a planted bug (see `tests.crashes.bugs`).

python -m tests.smoke.planted_application BUG ARGUMENTS
"""

from __future__ import annotations

import sys

from tests.crashes.bugs import BUGS
from tests.smoke.application import main

if __name__ == "__main__":
    BUGS[sys.argv.pop(1)]()
    main()
