"""Write the list of Kafka Streams' interface from its jars, and the page.

`--keep-list` writes only the page.
"""

from __future__ import annotations

import json
import sys

from tests.porting.api.java_api import KEPT, load_kept_api, read_java_api
from tests.porting.api.page import PAGE, render_page

if "--keep-list" not in sys.argv:
    KEPT.write_text(json.dumps(read_java_api(), indent=1) + "\n")
PAGE.write_text(render_page(load_kept_api()))
