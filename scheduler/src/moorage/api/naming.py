"""Python attribute names to Kubernetes JSON names; used by every struct of this room.

The rule is camelCase, with the initialisms Kubernetes writes in capitals (``podIP``, ``nodeID``).
"""

from __future__ import annotations

from typing import Final

_INITIALISMS: Final[dict[str, str]] = {
    "cidr": "CIDR",
    "cidrs": "CIDRs",
    "id": "ID",
    "ip": "IP",
    "ips": "IPs",
    "uri": "URI",
    "uuid": "UUID",
}


def json_name(attribute: str) -> str:
    """Return the JSON name of a snake_case attribute.

    A trailing underscore (a name Python keeps for itself) is dropped. The first word stays in
    lower case, initialisms or not: ``uid``, ``ip``, ``hostIP``.
    """
    first, *rest = attribute.rstrip("_").split("_")
    return first + "".join(_INITIALISMS.get(word, word.capitalize()) for word in rest)
