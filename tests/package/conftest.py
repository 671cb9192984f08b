"""Build the wheel once a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.package.building import ROOT, build


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory with the sdist of this checkout and the wheel that is built of it."""
    target = tmp_path_factory.mktemp("dist")
    build(ROOT, target)
    return target


@pytest.fixture(scope="session")
def wheel(built: Path) -> Path:
    [found] = built.glob("*.whl")
    return found
