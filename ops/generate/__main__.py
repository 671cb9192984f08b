"""Write all generated files: `python -m ops.generate`."""

from __future__ import annotations

from ops.generate.files import ROOT, render_files

if __name__ == "__main__":
    for path, text in render_files().items():
        (ROOT / path).write_text(text)
