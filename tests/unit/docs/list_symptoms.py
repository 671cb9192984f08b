"""Write the table of all codes into docs/troubleshooting/index.md.

Run it as `python -m tests.unit.docs.list_symptoms`.
"""

from __future__ import annotations

import re

from streams.symptoms.table import SYMPTOMS
from tests.unit.docs.test_troubleshooting_pages import DOCS, make_anchor

INDEX = DOCS / "troubleshooting" / "index.md"
HEAD = "| code | what it means |\n|---|---|\n"


def main() -> None:
    """Replace the rows below the head of the table."""
    rows = "".join(
        f"| [{each.code}]({each.page}#{make_anchor(each.code, each.page)}) | {each.meaning} |\n"
        for each in sorted(SYMPTOMS, key=lambda each: each.code)
    )
    before, _, after = INDEX.read_text().partition(HEAD)
    INDEX.write_text(before + HEAD + rows + re.sub(r"\A(\|.*\n)*", "", after))


if __name__ == "__main__":
    main()
