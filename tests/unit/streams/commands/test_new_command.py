"""Test that `millrace new` creates a project whose own test passes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streams.commands.project_templates import FILES
from streams.commands.root import cli


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["new", "page-views"])
    assert result.exit_code == 0, result.output
    assert result.stdout.split() == [f"page-views/{name}" for name in FILES]
    return tmp_path / "page-views"


def test_the_test_of_a_new_project_passes_and_finds_a_mistake(project: Path) -> None:
    def run_tests() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)

    done = run_tests()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    source = (project / "app.py").read_text()
    (project / "app.py").write_text(source.replace("line.lower()", "line.swapcase()"))
    assert run_tests().returncode == 1


def test_names_are_filled_in_everywhere(project: Path) -> None:
    texts = [path.read_text() for path in project.rglob("*") if path.is_file()]
    assert not any("$name" in text or "$input" in text or "$output" in text for text in texts)
    assert 'App("page-views"' in (project / "app.py").read_text()
    assert "page-views-lines" in (project / "README.md").read_text()


def test_files_that_exist_are_left_alone(project: Path) -> None:
    (project / "app.py").write_text("mine")
    result = CliRunner().invoke(cli, ["new", "page-views"])
    assert result.exit_code == 2
    assert "page-views/app.py" in result.stderr
    assert "exist already" in result.stderr
    assert (project / "app.py").read_text() == "mine"


@pytest.mark.parametrize("name", ["a b", "", "-", "../up", "ä", "a" * 101])
def test_a_name_that_is_no_application_id_is_refused(name: str, tmp_path: Path) -> None:
    target = tmp_path / "project"
    result = CliRunner().invoke(cli, ["new", f"--directory={target}", "--", name])
    assert result.exit_code == 2
    assert "can't be an application id" in result.stderr
    assert not target.exists()


def test_the_requirements_say_where_millrace_comes_from(project: Path) -> None:
    *comment, package, pytest_ = (project / "requirements.txt").read_text().splitlines()
    assert (package, pytest_) == ("millrace-streams", "pytest")
    assert comment
    assert all(line.startswith("# ") for line in comment)
    assert "the path of a clone" in " ".join(comment)
    workflow = (project / ".github" / "workflows" / "test.yml").read_text()
    assert "# Millrace comes from its repository" in workflow
