"""Test that all that is installed is pinned with hashes, to the versions of constraints.txt."""

from __future__ import annotations

import re
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.package.audit import report_findings
from tests.package.lock import FILES, leave_out_own_package
from tests.package.sbom import describe_wheel

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)((?: \\\n    --hash=\S+)*)", re.MULTILINE)


def read_pins(path: Path) -> dict[str, tuple[str, int]]:
    """Return the version of each package in a file, and how many hashes it has."""
    return {
        canonicalize_name(name): (version, hashes.count("sha256:"))
        for name, version, hashes in PIN.findall(path.read_text())
    }


CONSTRAINTS = {name: pin[0] for name, pin in read_pins(ROOT / "constraints.txt").items()}


@pytest.mark.parametrize("name", FILES)
def test_each_package_is_pinned_to_the_tested_version_by_hashes(name: str) -> None:
    path = ROOT / "requirements" / f"{name}.txt"
    pins = read_pins(path)
    assert {each: pin[0] for each, pin in pins.items()}.items() <= CONSTRAINTS.items()
    assert all(hash_count for _, hash_count in pins.values())
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith(" ")]
    assert len(lines) == len(pins), "a line that is no pin"


@pytest.mark.parametrize("name", FILES)
def test_what_the_project_asks_for_is_pinned(name: str) -> None:
    extras = PROJECT["optional-dependencies"]
    asked = [*PROJECT["dependencies"], *(each for extra in FILES[name] for each in extras[extra])]
    required = {canonicalize_name(Requirement(each).name) for each in asked}
    pins = read_pins(ROOT / "requirements" / f"{name}.txt")
    assert required - {"millrace-streams"} <= pins.keys(), "run `make lock`"


def test_no_constraint_is_left_that_nothing_needs() -> None:
    needed = {each for name in FILES for each in read_pins(ROOT / "requirements" / f"{name}.txt")}
    assert CONSTRAINTS.keys() == needed


def test_the_line_of_this_checkout_is_left_out() -> None:
    text = "# WARNING: x\na==1 \\\n    --hash=sha256:0\nmillrace-streams @ file:///x  # via y\n"
    assert leave_out_own_package(text) == "a==1 \\\n    --hash=sha256:0\n"


def test_an_audit_whose_service_does_not_answer_says_not_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert report_findings("dev.txt", "", "Traceback\nConnectionError: no route") == 0
    assert capsys.readouterr().out == "dev.txt: not run: ConnectionError: no route\n"


@pytest.mark.parametrize(
    "errors",
    [
        "requests.exceptions.ReadTimeout: Read timed out.",
        "requests.exceptions.ProxyError: Max retries exceeded with url: /pypi/a/1/json",
        "requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: /pypi",
        "Could not connect\nTip: your network may be blocking this service. Try another",
    ],
)
def test_a_service_that_does_not_answer_is_no_failure(errors: str) -> None:
    assert report_findings("dev.txt", "", errors) == 0


def test_an_audit_that_fails_by_itself_is_no_missing_answer() -> None:
    assert report_findings("dev.txt", "", "pip-audit: error: unrecognized arguments: --a") == 1


def test_an_audit_names_each_vulnerability(capsys: pytest.CaptureFixture[str]) -> None:
    vulnerability = '{"id": "CVE-1", "fix_versions": ["2"]}'
    package = f'{{"name": "a", "version": "1", "vulns": [{vulnerability}]}}'
    skipped = '{"name": "b", "skip_reason": "x"}'
    assert report_findings("dev.txt", f'{{"dependencies": [{package}, {skipped}]}}', "") == 1
    assert "a 1: CVE-1, mended in ['2']" in capsys.readouterr().out


def test_the_sbom_is_of_the_wheel_and_all_that_it_needs() -> None:
    listed = {
        "metadata": {"component": {"bom-ref": "root", "name": "millrace-streams"}},
        "components": [{"bom-ref": "b"}, {"bom-ref": "a"}],
        "dependencies": [{"ref": "a"}, {"ref": "b"}, {"ref": "root"}],
    }
    found = describe_wheel(listed, "1.2", b"wheel")
    assert found["metadata"]["component"]["version"] == "1.2"
    assert found["metadata"]["component"]["hashes"][0]["content"] == sha256(b"wheel").hexdigest()
    assert found["dependencies"][0] == {"ref": "root", "dependsOn": ["a", "b"]}
    assert [each["ref"] for each in found["dependencies"]] == ["root", "a", "b"]
