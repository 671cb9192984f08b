"""Write requirements/ anew: `make lock`, after pyproject.toml or constraints.txt was changed.

Each file has the hashes of all files of an index that are of the versions in constraints.txt:
`runtime.txt` is what the wheel needs, the others add what an extra needs.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES: dict[str, tuple[str, ...]] = {
    "runtime": (),
    "dev": ("dev", "registry"),
    "spark": ("spark",),
    "docs": ("docs",),
    "release": ("release",),
}
"""The extras of each file in requirements/."""
_OWN = "millrace-streams @ "


def compile_file(name: str) -> None:
    """Write requirements/NAME.txt by pip-compile."""
    target = ROOT / "requirements" / f"{name}.txt"
    command = [sys.executable, "-m", "piptools", "compile", "--quiet", "--generate-hashes"]
    command += ["--strip-extras", "--allow-unsafe", "--no-emit-find-links", "--no-emit-index-url"]
    command += ["--no-header", "--annotation-style=line", "--constraint=constraints.txt"]
    command += [f"--extra={extra}" for extra in FILES[name]]
    subprocess.run([*command, "--output-file", str(target), "pyproject.toml"], cwd=ROOT, check=True)
    target.write_text(leave_out_own_package(target.read_text()))


def leave_out_own_package(text: str) -> str:
    """Return a file's text without this checkout, which an extra names for another one."""
    lines = text.splitlines(keepends=True)
    return "".join(each for each in lines if not each.startswith((_OWN, "# ")))


if __name__ == "__main__":
    for each in FILES:
        compile_file(each)
        print(f"requirements/{each}.txt")
