"""Provide authorities and certificates, issued once for the tests of this package."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kafka.secured.certificates import Authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority("authority", tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def missing(tmp_path: Path) -> str:
    """Return the path of a file that doesn't exist."""
    return str(tmp_path / "missing.pem")
