"""Report an error that a person can correct, and end the process with its status."""

from __future__ import annotations

import logging
import sys
from typing import NoReturn

from state.rocksdb import is_closing_in_background
from streams.common.exit_status import ExitStatus
from streams.common.user_code import find_user_frame
from streams.errors import BrokerUnavailable, TopologyError, UserError
from streams.processes import signals
from streams.processes.logging_setup import logs_json
from streams.processes.workers import OUTAGE_STATUS
from streams.symptoms.lookup import find_symptom, format_page_address

log = logging.getLogger(__name__)

_USER_ERROR_STATUS = 2


def report_error(error: UserError) -> ExitStatus:
    """Print an error as one line on standard error and return exit status 2.

    It ends with the address of the page about it, if there is one, and is a line of the log where
    that is for programs. The traceback is logged at level debug, which `--verbose` shows.
    """
    message = f"{error}{locate_user_code(error)}"
    symptom = find_symptom(error)
    if logs_json():
        log.error(message, extra={} if symptom is None else {"code": symptom.code})
    else:
        sys.stderr.write(f"millrace: {message}{format_page_address(symptom)}\n")
    log.debug("the error with its traceback:", exc_info=error)
    return _USER_ERROR_STATUS


def _exit_status_of(error: UserError) -> ExitStatus:
    """Return the exit status of an application that an error ends."""
    return OUTAGE_STATUS if isinstance(error, BrokerUnavailable) else _USER_ERROR_STATUS


def exit_with_error(error: UserError, *, is_reported: bool = False) -> NoReturn:
    """Report the error that ends this process, unless another worker has, and end it."""
    status = _exit_status_of(error)
    if not is_reported:
        report_error(error)
    if is_closing_in_background():  # stores on a full disk, which have all in their logs
        signals.exit_now(status)
    sys.exit(status)


def locate_user_code(error: UserError) -> str:
    """Return " (file:line)" of the user's code that described a step which can't be built.

    Empty for an error that is no TopologyError, or where the place is not known.
    """
    if not isinstance(error, TopologyError):
        return ""
    frame = find_user_frame(error.__traceback__)
    return f" ({frame.filename}:{frame.lineno})" if frame else ""
