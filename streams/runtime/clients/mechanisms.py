"""Refuse the SASL mechanism that Millrace can't speak to brokers: GSSAPI, which is Kerberos.

librdkafka speaks it if it was built with libsasl2, which that of confluent-kafka's wheels was not.
The group membership has connections of its own, and these don't speak it with any build.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaException, Producer

from streams.connection.settings import GSSAPI, ConnectionSettings
from streams.errors import ConfigError

_FEATURE = "sasl_gssapi"
_ALTERNATIVES = "Use SCRAM, OAUTHBEARER or a client certificate"


def refuse_gssapi(settings: ConnectionSettings, create_producer: Any = Producer) -> None:
    """Raise ConfigError if the mechanism is GSSAPI.

    The message says whether librdkafka has it, what to build if not, and that the group membership
    doesn't speak it in either case. `create_producer`: confluent-kafka's class, or a test's.
    """
    if settings.mechanism != GSSAPI:
        return
    refused = f"connection: sasl.mechanism {GSSAPI} is not supported"
    membership = "Millrace's group membership, which has connections of its own, doesn't speak it"
    if _has_feature(_FEATURE, create_producer):
        raise ConfigError(
            f"{refused}: librdkafka has {_FEATURE} among its builtin.features here, but "
            f"{membership}. {_ALTERNATIVES}"
        )
    raise ConfigError(
        f"{refused}: librdkafka has no {_FEATURE} among its builtin.features here (that takes a "
        "librdkafka that was built with libsasl2, and confluent-kafka built from source on it), "
        f"and with it {membership} either. {_ALTERNATIVES}"
    )


def _has_feature(feature: str, create_producer: Any) -> bool:
    """Return whether librdkafka was built with a feature: it refuses to be set one that it lacks.

    A producer without brokers connects to none.
    """
    try:
        create_producer({"builtin.features": feature, "log_level": 0})
    except KafkaException:
        return False
    return True
