"""Write the SBOM of a wheel beside it: `python -m tests.package.sbom dist/NAME.whl`.

It is CycloneDX's list of what requirements/runtime.txt pins, by cyclonedx-py, for the wheel with
its version and checksum.
"""

from __future__ import annotations

import json
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def write_sbom(wheel: Path) -> Path:
    """Write the SBOM of a wheel to `NAME-VERSION.cdx.json` and return its path."""
    name, version, *_ = wheel.name.split("-")
    command = [sys.executable, "-m", "cyclonedx_py", "requirements", "requirements/runtime.txt"]
    command += ["--pyproject", "pyproject.toml", "--output-reproducible", "--output-format", "JSON"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    described = describe_wheel(json.loads(listed), version, wheel.read_bytes())
    target = wheel.with_name(f"{name}-{version}.cdx.json")
    target.write_text(json.dumps(described, indent=2) + "\n")
    return target


def describe_wheel(sbom: dict[str, Any], version: str, content: bytes) -> dict[str, Any]:
    """Return an SBOM whose component is the wheel, and which depends on all that is listed."""
    root = sbom["metadata"]["component"]
    root["version"] = version
    root["hashes"] = [{"alg": "SHA-256", "content": sha256(content).hexdigest()}]
    needed = sorted(each["bom-ref"] for each in sbom["components"])
    others = [each for each in sbom.get("dependencies", ()) if each["ref"] != root["bom-ref"]]
    sbom["dependencies"] = [{"ref": root["bom-ref"], "dependsOn": needed}, *others]
    return sbom


if __name__ == "__main__":
    print(write_sbom(Path(sys.argv[1]).resolve()))
