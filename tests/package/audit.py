"""Ask a database of vulnerabilities about what requirements/ pins: `make audit`, by pip-audit.

Where its service does not answer, nothing is known: it says "not run", and why, with status 0, as
the machine is at fault and not a package. A vulnerability that is found is status 1, as is any
other failure of pip-audit, such as an option that it does not know.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 300.0
_NO_ANSWER = (
    "ConnectionError",
    "ReadTimeout",
    "Max retries exceeded",
    "your network may be blocking this service",  # a connection that timed out
    "Server Error: ",  # an answer of 5xx
)
"""What the errors of pip-audit have in them where its service can't be reached."""


def audit_file(path: Path) -> int:
    """Print what is known of the packages in a file with hashes; return the exit status."""
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes"]
    command += ["--progress-spinner=off", "--format=json", "--requirement", str(path)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"{path.name}: not run: no answer within {TIMEOUT_S:.0f} s")
        return 0
    return report_findings(path.name, done.stdout, done.stderr)


def report_findings(name: str, output: str, errors: str) -> int:
    """Print the findings in pip-audit's output, or that it was not run; return the exit status."""
    try:
        packages = json.loads(output)["dependencies"]
    except ValueError:
        why = (errors.strip().splitlines() or ["no output"])[-1]
        print(f"{name}: not run: {why}")
        return 0 if any(each in errors for each in _NO_ANSWER) else 1
    found = [
        f"{each['name']} {each['version']}: {one['id']}, mended in {one['fix_versions'] or 'none'}"
        for each in packages
        for one in each.get("vulns", ())
    ]
    print("\n".join([f"{name}: {len(packages)} packages, {len(found)} vulnerabilities", *found]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(max(audit_file(each) for each in sorted((ROOT / "requirements").glob("*.txt"))))
