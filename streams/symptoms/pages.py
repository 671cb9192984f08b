"""Read the section of a page about a symptom.

An installed package has the pages beside this file, a checkout in docs/troubleshooting.
"""

from __future__ import annotations

import re
from pathlib import Path

from streams.symptoms.symptom import Symptom

_HERE = Path(__file__).parent
_CODE_HEADING = re.compile(r"^## (MR-\d{3}): ", re.MULTILINE)


def find_pages(package: Path = _HERE) -> Path:
    """Return the directory of the pages about symptoms, of this package in its directory."""
    installed = package / "troubleshooting"
    return installed if installed.is_dir() else package.parents[1] / "docs" / "troubleshooting"


def require_section(symptom: Symptom, directory: Path | None = None) -> str:
    """Return the section of a symptom's page whose heading begins with its code, as Markdown.

    Raises: LookupError if the page has no such section.
    """
    text = ((directory or find_pages()) / symptom.page).read_text(encoding="utf-8")
    headings = list(_CODE_HEADING.finditer(text))
    for number, heading in enumerate(headings):
        if heading[1] == symptom.code:
            following = headings[number + 1].start() if number + 1 < len(headings) else len(text)
            return text[heading.start() : following].strip() + "\n"
    raise LookupError(f"{symptom.page} has no section with the heading '## {symptom.code}: ...'")
