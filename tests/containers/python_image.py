"""Make an image of Debian's Python, in which the page's Dockerfile can be built without any pull.

`python:3.13-slim` can't be had where no registry is. This one has Debian's packages of Python and
pip, and what the Dockerfile calls besides. pip in it finds what it finds on this machine: it has
this machine's certificates and settings of pip.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from pathlib import Path

import docker

from tests.containers.image import NotBuilt, own_by_root, run_or_refuse

IMAGE = "millrace-python:debian"
PACKAGES = ("dash", "coreutils", "passwd", "python3", "python3-pip", "libstdc++6", "zlib1g")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# Debian's pip refuses to install into Debian's Python; an image's Python is the image's own.
MARK_OF_DEBIAN = "usr/lib/python3*/EXTERNALLY-MANAGED"
ACCOUNTS = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "group": "root:x:0:\n",
    "shadow": "root:*:19000:0:99999:7:::\n",
    "login.defs": "UID_MIN 1000\nGID_MIN 1000\nUSERGROUPS_ENAB yes\nCREATE_HOME yes\n",
}


def provide_python(client: docker.DockerClient) -> str:
    """Make the image if the engine lacks it, and return its name. Raises NotBuilt."""
    if client.images.list(name=IMAGE):
        return IMAGE
    repository, tag = IMAGE.split(":")
    with tempfile.TemporaryDirectory(prefix="millrace-python-") as directory:
        root, packed = Path(directory, "root"), Path(directory, "image.tar")
        _unpack_with_dependencies(root, Path(directory, "packages"))
        _complete_root(root)
        with tarfile.open(packed, "w") as tar:
            tar.add(root, ".", filter=own_by_root)
        changes = ["ENV LANG=C.UTF-8", *(f"ENV {name}={value}" for name, value in _pip_settings())]
        client.api.import_image_from_file(str(packed), repository, tag, changes=changes)
    return IMAGE


def _pip_settings() -> list[tuple[str, str]]:
    """Return the variables by which pip in the image reaches the index that this machine uses."""
    names = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    names.pop("PIP_FIND_LINKS", None)  # a directory of this machine
    if CERTIFICATES.exists():
        names["PIP_CERT"] = str(CERTIFICATES)
    return sorted(names.items())


def _unpack_with_dependencies(root: Path, downloads: Path) -> None:
    """Fetch the packages with all that they depend on, as for a bare machine, and unpack them."""
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise NotBuilt(f"the image is made of Debian packages: there is no {tool}")
    (downloads / "partial").mkdir(parents=True)
    status = downloads / "status"
    status.touch()  # nothing is installed, so that nothing is left out
    options = {
        "Debug::NoLocking": "1",
        "Dir::State::status": status,
        "Dir::Cache::archives": downloads,
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        "APT::Sandbox::User": "root",
    }
    command = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]
    command += ["--no-install-recommends", "--download-only", "-y", "install", *PACKAGES]
    run_or_refuse(command, downloads)
    for name in ("bin", "sbin", "lib", "lib64"):  # packages of both layouts fit
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    for package in sorted(downloads.glob("*.deb")):
        unpack = 'dpkg-deb --fsys-tarfile "$0" | tar --extract --keep-directory-symlink -C "$1"'
        run_or_refuse(["sh", "-ec", unpack, str(package), str(root)], downloads)


def _complete_root(root: Path) -> None:
    """Add what the packages' scripts would make, and this machine's certificates."""
    (root / "usr/bin/sh").unlink(missing_ok=True)
    (root / "usr/bin/sh").symlink_to("dash")
    for mark in root.glob(MARK_OF_DEBIAN):
        mark.unlink()
    for name, content in ACCOUNTS.items():
        (root / "etc" / name).write_text(content)
    (root / "tmp").mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)
    if CERTIFICATES.exists():
        target = root / CERTIFICATES.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CERTIFICATES, target)
