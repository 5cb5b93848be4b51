"""Name rules beyond those of `moorage.api.names`, in the API server's own words.

Place in the flow: used by every kind's validation. The texts follow kubernetes v1.36
apimachinery pkg/util/validation, because people and programs read them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from moorage.api.names import DNS_LABEL_LENGTH_MAX

NameRule = Callable[[str], list[str]]
"""A rule for a name: the errors found, empty when the name is valid."""

_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_CONFIG_KEY_LENGTH_MAX = 253
_CONFIG_KEY = re.compile("[-._a-zA-Z0-9]+")
_PORT_NAME = re.compile("[-a-z0-9]+")
_ENV_NAME = re.compile(r"[ -<>-~]+")

PORT_NAME_LENGTH = 15


def service_name(name: str) -> list[str]:
    """RFC 1035 label: the names of services."""
    faults = []
    if len(name) > DNS_LABEL_LENGTH_MAX:
        faults.append(f"must be no more than {DNS_LABEL_LENGTH_MAX} characters")
    if not re.fullmatch(_LABEL_1035, name):
        faults.append(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start "
            "with an alphabetic character, and end with an alphanumeric character (e.g. "
            f"'my-name',  or 'abc-123', regex used for validation is '{_LABEL_1035}')"
        )
    return faults


def path_segment_name(name: str) -> list[str]:
    """Anything that can be one segment of a URL path: the names of events."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{each}'" for each in "/%" if each in name]


def port_name(name: str) -> list[str]:
    """IANA service name: the names of ports."""
    faults = []
    if len(name) > PORT_NAME_LENGTH:
        faults.append(f"must be no more than {PORT_NAME_LENGTH} characters")
    if not _PORT_NAME.fullmatch(name):
        faults.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        faults.append("must contain at least one letter (a-z)")
    if "--" in name:
        faults.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        faults.append("must not begin or end with a hyphen")
    return faults


def env_name(name: str) -> list[str]:
    """Name of an environment variable: printable ASCII except the equals sign."""
    if _ENV_NAME.fullmatch(name):
        return []
    return [
        "a valid environment variable name must consist only of printable ASCII characters "
        "other than '='"
    ]


def config_key(key: str) -> list[str]:
    """Key of a ConfigMap or a Secret."""
    faults = []
    if len(key) > _CONFIG_KEY_LENGTH_MAX:
        faults.append(f"must be no more than {_CONFIG_KEY_LENGTH_MAX} characters")
    if not _CONFIG_KEY.fullmatch(key):
        faults.append(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
            "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
            "'[-._a-zA-Z0-9]+')"
        )
    if key in (".", ".."):
        faults.append(f"must not be '{key}'")
    elif key.startswith(".."):
        faults.append("must not start with '..'")
    return faults


def port_number(port: int) -> list[str]:
    """Check the number of a port."""
    return [] if 1 <= port <= 65_535 else ["must be between 1 and 65535, inclusive"]
