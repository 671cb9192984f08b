"""Test what wheel and sdist hold, and that one is built of the other."""

from __future__ import annotations

import subprocess
import tarfile
import tomllib
from pathlib import Path
from zipfile import ZipFile

from tests.package.building import ROOT, build

PACKAGES = ("millrace", "streams", "state", "coordinator")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def tracked_files() -> set[str]:
    """Return the files of the product that git knows."""
    names = subprocess.check_output(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *PACKAGES], cwd=ROOT
    )
    pages = (ROOT / "docs" / "troubleshooting").glob("*.md")
    return {
        *(n for n in names.decode().split("\n") if n and (ROOT / n).exists()),
        *(f"streams/symptoms/troubleshooting/{page.name}" for page in pages),
        "pytest_millrace.py",
    }


def read_members(wheel: Path) -> dict[str, bytes]:
    with ZipFile(wheel) as file:
        return {name: file.read(name) for name in file.namelist()}


def test_the_wheel_has_the_product_and_nothing_else(wheel: Path) -> None:
    members = read_members(wheel)
    info = f"millrace_streams-{wheel.name.split('-')[1]}.dist-info"
    described = {name for name in members if name.startswith(f"{info}/")}
    assert set(members) - described == tracked_files()
    assert {f"{info}/licenses/LICENSE", f"{info}/METADATA", f"{info}/entry_points.txt"} <= described
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(members)
    assert "streams/spark/log4j2.properties" in members
    assert members[f"{info}/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()


def test_the_wheel_says_which_pythons_and_packages_it_needs(wheel: Path) -> None:
    [metadata] = [data for name, data in read_members(wheel).items() if name.endswith("/METADATA")]
    lines = metadata.decode().split("\n\n")[0].splitlines()
    assert "Name: millrace-streams" in lines
    assert "License-Expression: Apache-2.0" in lines
    assert f"Requires-Python: {PROJECT['requires-python']}" in lines
    required = [
        line for line in lines if line.startswith("Requires-Dist:") and "extra ==" not in line
    ]
    assert len(required) == len(PROJECT["dependencies"])


def test_a_wheel_of_the_checkout_has_the_content_of_the_one_of_the_sdist(
    wheel: Path, tmp_path: Path
) -> None:
    assert read_members(build(ROOT, tmp_path, "--wheel")) == read_members(wheel)


def test_the_sdist_has_no_tests_and_says_what_it_is(built: Path) -> None:
    [sdist] = built.glob("*.tar.gz")
    with tarfile.open(sdist) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "pyproject.toml"} <= names
    folders = {name.partition("/")[0] for name in names if "/" in name}
    assert folders == {*PACKAGES, "docs"}
    assert {name for name in names if name.startswith("docs/")} == {
        f"docs/troubleshooting/{page.name}"
        for page in (ROOT / "docs" / "troubleshooting").glob("*.md")
    }
