"""Check the environment variables that begin with MILLRACE_.

A variable of no setting is pointed out once, with the setting that is likely meant. It ends
nothing: environments are shared, and their variables are not always the application's own.
Kubernetes gives each pod variables for each Service of its namespace: those of a Service called
`millrace`, or `millrace-...`, are of this form, and are left alone.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from typing import Any

from pydantic.fields import FieldInfo

from streams.settings.client_settings import CLIENT_SETTINGS, parse_client_settings
from streams.settings.setting_origins import ENVIRONMENT_PREFIX, name_environment_variable
from streams.settings.validation_messages import describe_unknown_setting

log = logging.getLogger(__name__)

_OF_A_SERVICE = re.compile(
    rf"{ENVIRONMENT_PREFIX}(\w+_)?"
    r"(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
"""What Kubernetes, and Docker's links, call the variables of a Service."""
_ADDRESS_OF_A_SERVICE = re.compile(r"(tcp|udp|sctp)://.*")
"""The value of a Service's variable that ends in _PORT."""
_POINTED_OUT: set[str] = set()


def check_environment_variables(
    fields: Mapping[str, FieldInfo], pointed_out: set[str] = _POINTED_OUT
) -> None:
    """Point out variables of no setting of `fields`, once in a process.

    `pointed_out` are those of which that was said. Raises ConfigError for a variable of client
    settings that is no JSON.
    """
    for variable in sorted(os.environ):
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        if name in CLIENT_SETTINGS:
            parse_client_settings(variable, os.environ[variable])
        elif (
            name not in fields
            and not _is_service_address_variable(variable)
            and variable not in pointed_out
        ):
            pointed_out.add(variable)
            log.warning(
                "%s; the variable is not used",
                describe_unknown_setting(variable, name, fields, spell=name_environment_variable),
            )


def leave_out_service_addresses(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the environment without ports that Kubernetes has set.

    A Service called `millrace-health` gives MILLRACE_HEALTH_PORT=tcp://10.0.0.1:80 to each pod.
    """
    return {
        name: value
        for name, value in values.items()
        if not (name.endswith("_port") and _ADDRESS_OF_A_SERVICE.fullmatch(str(value)))
    }


def _is_service_address_variable(variable: str) -> bool:
    """Return whether Kubernetes has made a variable for a Service."""
    if _OF_A_SERVICE.fullmatch(variable):
        return True
    is_address = _ADDRESS_OF_A_SERVICE.fullmatch(os.environ[variable]) is not None
    return variable.endswith("_PORT") and is_address
