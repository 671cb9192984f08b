"""Test queries over TLS: which certificates are taken, and that files which change are."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from streams.errors import ConfigError, StoreUnavailable
from streams.queries import endpoint_client, http_server
from streams.queries.endpoint_client import EndpointClient
from streams.queries.endpoint_connections import EndpointConnections
from streams.queries.http_connection import HttpConnection
from streams.queries.query_tls import QueryTls, ServerCertificate
from streams.queries.store_answers import StoreAnswer
from streams.queries.store_reads import StoreRead
from tests.kafka.secured.certificates import Authority, Certificate
from tests.processes import HANG_LIMIT_S, wait_until
from tests.unit.streams.queries.served import TOKEN, FakeReads, create_reads, serve

CHECK_S = 0.05


class Files:
    """Holds the files of a worker's certificate and of the authorities that it trusts."""

    def __init__(self, directory: Path) -> None:
        self.authority = Authority("first", directory)
        self.other_authority = Authority("second", directory)
        self.certificate = directory / "tls.crt"
        self.key = directory / "tls.key"
        self.authorities = directory / "ca.crt"
        self.install(self.authority.issue_server())
        self.trust(self.authority)

    def install(self, certificate: Certificate, key: Certificate | None = None) -> None:
        shutil.copy(certificate.certificate_path, self.certificate)
        shutil.copy((key or certificate).key_path, self.key)

    def trust(self, authority: Authority) -> None:
        shutil.copy(authority.path, self.authorities)

    @property
    def tls(self) -> QueryTls:
        return QueryTls(self.certificate, self.key, "", self.authorities)

    def load(self) -> ServerCertificate:
        return ServerCertificate(self.tls, time.monotonic)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    monkeypatch.setattr(http_server, "CHECK_INTERVAL_S", CHECK_S)
    monkeypatch.setattr(endpoint_client, "CHECK_INTERVAL_S", CHECK_S)
    return Files(tmp_path)


@pytest.fixture
def reads() -> FakeReads:
    return create_reads()


@pytest.fixture
def address(files: Files, reads: FakeReads) -> Iterator[str]:
    with serve(reads, certificate=files.load()) as (host, port):
        yield f"{host}:{port}"


@pytest.fixture
def client(files: Files) -> Iterator[EndpointClient]:
    client = EndpointClient(TOKEN, files.tls)
    yield client
    client.close()


def read_key_on_loop(client: EndpointClient, address: str, reads: FakeReads) -> StoreAnswer:
    async def read() -> StoreAnswer:
        try:
            return await client.read_on_loop(
                address,
                reads.specs["counts"],
                StoreRead(is_lookup=True, key="a"),
                partitions={0},
                at_least={},
                timeout_s=HANG_LIMIT_S,
            )
        finally:
            client.close_on_loop()
            await asyncio.sleep(0)  # until the loop has closed its connections

    return asyncio.run(read())


def read_key(client: EndpointClient, address: str, reads: FakeReads) -> StoreAnswer:
    return client.read(
        address,
        reads.specs["counts"],
        StoreRead(is_lookup=True, key="a"),
        partitions={0},
        at_least={},
        stale_ok=None,
        timeout_s=HANG_LIMIT_S,
    )


def is_answered(client: EndpointClient, address: str, reads: FakeReads) -> bool:
    try:
        return bool(read_key(client, address, reads).rows[0].value == 1)
    except StoreUnavailable:
        return False


def serial_of(address: str, files: Files) -> int:
    """Return the serial number of the certificate that a new connection is shown."""
    host, port = address.split(":")
    context = ssl.create_default_context(cafile=files.authority.path)
    with (
        socket.create_connection((host, int(port)), timeout=HANG_LIMIT_S) as connection,
        context.wrap_socket(connection, server_hostname=host) as secured,
    ):
        return int(str((secured.getpeercert() or {})["serialNumber"]), 16)


ReadKey = Callable[[EndpointClient, str, FakeReads], StoreAnswer]
IN_BOTH_WAYS = pytest.mark.parametrize("read", [read_key, read_key_on_loop])


@IN_BOTH_WAYS
def test_a_worker_is_asked_over_tls_with_the_token(
    address: str, files: Files, reads: FakeReads, client: EndpointClient, read: ReadKey
) -> None:
    assert read(client, address, reads).rows[0].value == 1
    wrong = EndpointClient("another-token-than-the-right-one", files.tls)
    with pytest.raises(StoreUnavailable, match=r"give the query_token of the application"):
        read(wrong, address, reads)
    wrong.close()


@IN_BOTH_WAYS
def test_without_tls_nothing_is_answered(address: str, reads: FakeReads, read: ReadKey) -> None:
    plain = EndpointClient(TOKEN)
    with pytest.raises(StoreUnavailable, match="does not answer"):
        read(plain, address, reads)
    plain.close()


@IN_BOTH_WAYS
def test_a_worker_whose_certificate_is_of_nobody_who_is_trusted_is_not_asked(
    address: str, files: Files, reads: FakeReads, read: ReadKey
) -> None:
    files.trust(files.other_authority)
    distrusting = EndpointClient(TOKEN, files.tls)
    with pytest.raises(StoreUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
        read(distrusting, address, reads)
    assert not reads.reads
    distrusting.close()
    by_system = EndpointClient(TOKEN, QueryTls(files.certificate, files.key))
    with pytest.raises(StoreUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
        read(by_system, address, reads)
    by_system.close()


@IN_BOTH_WAYS
def test_a_worker_whose_certificate_is_for_another_name_is_not_asked(
    files: Files, reads: FakeReads, client: EndpointClient, read: ReadKey
) -> None:
    files.install(files.authority.issue_server(("elsewhere.example",)))
    with (
        serve(reads, certificate=files.load()) as (host, port),
        pytest.raises(StoreUnavailable, match="IP address mismatch"),
    ):
        read(client, f"{host}:{port}", reads)


def test_a_renewed_certificate_is_shown_to_those_who_connect(
    address: str, files: Files, reads: FakeReads, client: EndpointClient
) -> None:
    before = serial_of(address, files)
    with httpx.Client(
        base_url=f"https://{address}",
        headers={"Authorization": f"Bearer {TOKEN}"},
        verify=ssl.create_default_context(cafile=files.authority.path),
    ) as connected:
        assert connected.get("/stores").status_code == 200
        files.install(files.authority.issue_server())
        wait_until(lambda: serial_of(address, files) != before, what="the renewed certificate")
        # The connection that was there goes on.
        assert connected.get("/stores").status_code == 200
    assert is_answered(client, address, reads)


def test_an_expired_certificate_is_told_and_refused_until_it_is_renewed(
    files: Files, reads: FakeReads, client: EndpointClient, caplog: pytest.LogCaptureFixture
) -> None:
    files.install(files.authority.issue_server(expired=True))
    with serve(reads, certificate=files.load()) as (host, port):
        assert "has a certificate which has expired: it was valid until" in caplog.text
        with pytest.raises(StoreUnavailable, match="certificate has expired"):
            read_key(client, f"{host}:{port}", reads)
        files.install(files.authority.issue_server())
        wait_until(
            lambda: is_answered(client, f"{host}:{port}", reads), what="the renewed certificate"
        )


def test_a_certificate_without_its_key_is_kept_out_until_the_key_is_there(
    address: str, files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    before, renewed = serial_of(address, files), files.authority.issue_server()
    files.install(renewed, key=files.authority.issue_server())
    wait_until(
        lambda: "the key isn't that of the certificate: the certificate before" in caplog.text,
        what="the refusal",
    )
    assert serial_of(address, files) == before
    files.install(renewed)
    wait_until(lambda: serial_of(address, files) != before, what="the renewed certificate")
    assert caplog.text.count("the certificate before stays in use") == 1


def test_other_authorities_are_trusted_when_their_file_has_changed(
    address: str,
    files: Files,
    reads: FakeReads,
    client: EndpointClient,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed: list[EndpointConnections] = []
    close = EndpointConnections.close

    def note_closing(self: EndpointConnections) -> None:
        closed.append(self)
        close(self)

    monkeypatch.setattr(EndpointConnections, "close", note_closing)
    assert is_answered(client, address, reads)
    files.trust(files.other_authority)
    wait_until(lambda: not is_answered(client, address, reads), what="the other authority")
    assert len(closed) == 1, "the connections to those who were trusted before are still open"
    files.authorities.write_text("no PEM")
    wait_until(
        lambda: is_answered(client, address, reads) or "those before stay in use" in caplog.text,
        what="the refusal",
    )
    files.trust(files.authority)
    wait_until(lambda: is_answered(client, address, reads), what="the first authority again")


def test_a_client_that_does_not_finish_the_handshake_is_disconnected(
    files: Files, reads: FakeReads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HttpConnection, "arrival_s", 0.3)
    with (
        serve(reads, certificate=files.load()) as address,
        socket.create_connection(address, timeout=HANG_LIMIT_S) as connection,
    ):
        connection.sendall(b"\x16\x03\x01")
        assert connection.recv(100) == b""


def test_tls_below_1_2_is_refused(address: str) -> None:
    host, port = address.split(":")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with (
        socket.create_connection((host, int(port)), timeout=HANG_LIMIT_S) as connection,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        context.wrap_socket(connection)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("certificate", r"query_ssl_certificate_location '.*tls.crt' with .* isn't PEM"),
        ("key", r"with query_ssl_key_location '.*tls.key' can't be used: it isn't PEM"),
        ("absent", r"can't be used: No such file or directory"),
        ("other", r"the key isn't that of the certificate"),
    ],
)
def test_files_that_can_not_be_used_are_named(files: Files, broken: str, message: str) -> None:
    match broken:
        case "certificate":
            files.certificate.write_text("no PEM")
        case "key":
            files.key.write_text("no PEM")
        case "absent":
            files.certificate.unlink()
        case "other":
            files.install(files.authority.issue_server(), key=files.authority.issue_server())
    with pytest.raises(ConfigError, match=message):
        files.load()


def test_authorities_that_can_not_be_used_are_named(files: Files) -> None:
    files.authorities.write_text("no PEM")
    with pytest.raises(ConfigError, match=r"query_ssl_ca_location '.*ca.crt' can't be used"):
        EndpointClient(TOKEN, files.tls)
