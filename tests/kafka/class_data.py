"""Share the class data of Java programs, so that each starts in half of the processor time.

A JVM can write what it has read and verified of its classes into an archive when it ends (JEP 350);
later ones map it. The first process of a program whose end is waited for writes its archive, which
stays beside the jars and goes with them. A JVM looks at the class path and at its own version, and
reads the classes as ever where an archive is not for it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path

_QUIET = "-Xlog:cds*=off"
"""An archive leaves some classes out, and says so; what tools print is read."""

_ORDERLY_ENDS = frozenset({0, 128 + signal.SIGTERM, -signal.SIGTERM})
"""The exit codes of a JVM that has written its draft to the end."""


@dataclass(frozen=True, slots=True)
class ClassData:
    """Represents the archive of one program in a directory of jars, and who may write it: `draft`.

    Processes may write at the same time, each a draft of its own.
    """

    archive: Path
    draft: Path

    @classmethod
    def find(cls, libs: Path, program: str, directory: Path) -> ClassData:
        """Return the archive of `program`; a draft of it would be in `directory`."""
        java = Path(os.path.realpath(shutil.which("java") or "java"))
        version = f"{libs} {java} {java.stat().st_mtime_ns if java.exists() else 0}"
        name = f"{program}-{hashlib.sha256(version.encode()).hexdigest()[:12]}.jsa"
        return cls(libs / name, directory / name)

    @property
    def flags(self) -> tuple[str, ...]:
        """Return the flags of the JVM that let a process map the archive, or write a draft."""
        if self.archive.exists():
            return f"-XX:SharedArchiveFile={self.archive}", _QUIET
        return f"-XX:ArchiveClassesAtExit={self.draft}", _QUIET

    def keep_draft(self, returncode: int | None) -> None:
        """Make the archive of the draft, if a process has written one and ended in order."""
        is_whole = returncode in _ORDERLY_ENDS and self.draft.exists()
        if is_whole and not self.archive.exists():
            number, beside = tempfile.mkstemp(dir=self.archive.parent, prefix=self.archive.stem)
            os.close(number)
            shutil.copy(self.draft, beside)
            Path(beside).replace(self.archive)
        self.draft.unlink(missing_ok=True)
