"""Make an image of Apache Kafka that `KafkaContainer` can start, without pulling any.

Debian's packages of a Java runtime and of busybox, unpacked; the jars that Maven has fetched for
the other tests; and the four files in `image/`, which are what KafkaContainer calls. The result is
kept in `.kafka/` as a tar file, and made anew when anything that it is made of has changed.

`python -m tests.containers.image` makes it for the engine that answers.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import docker

from tests.kafka.server import JARS, class_path

# KafkaContainer.with_kraft() wants a tag as Confluent numbers it: its 8.4 is Kafka 4.4.
IMAGE = "millrace-kafka:8.4.0"
FILES = Path(__file__).with_name("image")
PACKAGES = ("busybox-static", "libc6", "libgcc-s1", "libstdc++6", "zlib1g")
APPLETS = ("awk", "cat", "cut", "env", "hostname", "ls", "sed", "sh", "sleep")
PLACES = {
    "bash-config": "etc/confluent/docker",
    "configure": "etc/confluent/docker",
    "launch": "etc/confluent/docker",
    "kafka-storage": "usr/bin",
}
FETCH_TIMEOUT_S = 300.0


class NotBuilt(RuntimeError):
    """Says that the image can't be made on this machine; the message says why."""


def provide(client: docker.DockerClient) -> str:
    """Build the image if the engine lacks it, and return its name. Raises NotBuilt."""
    repository, tag = IMAGE.split(":")
    if client.images.list(name=IMAGE):
        return IMAGE
    changes = ["ENV LANG=C.UTF-8", 'CMD ["sh"]']
    client.api.import_image_from_file(str(packed()), repository, tag, changes=changes)
    return IMAGE


def packed() -> Path:
    """Pack the image's only layer as a tar file and return its path."""
    sources = [Path(__file__), JARS.pom, *(FILES / name for name in PLACES)]
    contents = b"".join(path.read_bytes() for path in sources) + JARS.libs.name.encode()
    version = hashlib.sha256(contents).hexdigest()[:12]
    target = JARS.libs.with_name(f"image-{version}.tar")
    if not target.exists():
        for older in target.parent.glob("image-*.tar"):
            older.unlink()
        with tempfile.TemporaryDirectory(prefix="millrace-image-") as directory:
            root = Path(directory, "root")
            _unpack_packages(root, Path(directory, "packages"))
            _add_kafka(root)
            fresh = target.with_suffix(f".{os.getpid()}")
            with tarfile.open(fresh, "w") as tar:
                tar.add(root, ".", filter=own_by_root)
            fresh.replace(target)  # what was cut short leaves nothing that looks whole
    return target


def _unpack_packages(root: Path, downloads: Path) -> None:
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise NotBuilt(f"the image is made of Debian packages: there is no {tool}")
    downloads.mkdir()
    root.mkdir()
    depends = run_or_refuse(["apt-cache", "depends", "default-jre-headless"], downloads)
    runtime = re.search(r"openjdk-\d+-jre-headless", depends)
    if runtime is None:
        raise NotBuilt("no Java runtime in the lists of packages: apt-get update")
    # Without what else a runtime depends on: sound, printing and smart cards.
    run_or_refuse(["apt-get", "-qq", "download", *PACKAGES, runtime[0]], downloads)
    for package in downloads.glob("*.deb"):
        run_or_refuse(["dpkg-deb", "--extract", str(package), str(root)], downloads)
    for unused in ("usr/share/doc", "usr/share/man", "usr/lib/x86_64-linux-gnu/gconv"):
        shutil.rmtree(root / unused, ignore_errors=True)
    for name in ("bin", "lib", "lib64"):  # newer packages have all of it in /usr
        if not (root / name).exists():
            (root / name).symlink_to(f"usr/{name}")
    java = min((root / "usr/lib/jvm").glob("*/bin/java"))
    (root / "usr/bin").mkdir(exist_ok=True)
    (root / "usr/bin/java").symlink_to(f"/{java.relative_to(root)}")
    for applet in APPLETS:
        (root / "bin" / applet).symlink_to("busybox")


def _add_kafka(root: Path) -> None:
    class_path()  # has the jars fetched
    jars = root / "opt/kafka"
    jars.mkdir(parents=True)
    for jar in JARS.libs.glob("*.jar"):
        shutil.copy(jar, jars)
    for name in ("etc/kafka", "var/lib/kafka", "tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, place in PLACES.items():
        (root / place).mkdir(parents=True, exist_ok=True)
        (root / place / name).write_bytes((FILES / name).read_bytes())
        (root / place / name).chmod(0o755)


def own_by_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return an entry of a tar file as one that root owns."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


def run_or_refuse(command: list[str], directory: Path) -> str:
    """Run a command in a directory and return what it prints. Raises NotBuilt if it fails."""
    done = subprocess.run(
        command,
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=FETCH_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise NotBuilt(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


if __name__ == "__main__":
    print(provide(docker.from_env()))
