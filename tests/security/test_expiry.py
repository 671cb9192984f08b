"""Test that a client certificate which expires while its application runs is told by its date."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from streams.errors import AuthenticationError
from tests.kafka.secured.server import ADMIN, SecuredKafka
from tests.processes import wait_until
from tests.security.certificate_files import CertificateFiles
from tests.security.counting import CountingApplication

pytestmark = pytest.mark.usefixtures("quick_checks")

LIFETIME = timedelta(seconds=15)


def test_an_application_whose_certificate_expires_says_so_and_goes_on_with_a_new_one(
    secured_kafka: SecuredKafka,
    application: CountingApplication,
    restart_kafka: Callable[[], None],
    tmp_path: Path,
) -> None:
    """Check that open connections serve on, that new ones are refused, and that a start is, too."""
    authority = secured_kafka.authority
    files = CertificateFiles(tmp_path, authority.issue_client(ADMIN, valid_for=LIFETIME))
    expires_at_s = time.time() + LIFETIME.total_seconds()
    access = files.describe(secured_kafka)
    running = application.start(access)
    application.load(50)
    application.wait_until_counted()
    wait_until(lambda: time.time() > expires_at_s + 1, what="the certificate expires")
    application.load(50)
    application.wait_until_counted()
    restart_kafka()  # cuts every connection
    wait_until(lambda: running.state == "ERROR", what="the application ends")
    with pytest.raises(AuthenticationError, match="which has expired: it was valid until"):
        running.close()
    application.load(50)
    with pytest.raises(AuthenticationError, match="which has expired: it was valid until"):
        application.start(access)
    files.write(authority.issue_client(ADMIN))
    with application.start(access):
        application.wait_until_counted()
    application.check_exact()
