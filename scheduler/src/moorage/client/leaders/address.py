"""Where the leader answers, as an annotation of its Lease.

Whoever may write the Lease of a scheduler decides where its callers send their credentials, as
whoever may write the Lease decides who schedules (decision 83).
"""

from __future__ import annotations

import os
import socket
from typing import Any, Final

import msgspec

from moorage.api.codec import NOT_JSON
from moorage.base.files import read_file
from moorage.client.auth import SERVICE_ACCOUNT_DIR

ANNOTATION: Final = "moorage.dev/leader"


class LeaderAddress(msgspec.Struct, frozen=True, omit_defaults=True):
    """The address of the scheduler that holds a Lease.

    Parameters
    ----------
    holder
        Its identity, as in ``spec.holderIdentity``. An annotation that another holder left behind
        says nothing about the present one.
    pod
        ``NAMESPACE/NAME`` of the pod it runs in; empty outside of pods.
    port
        Its secure port.
    certificate
        The certificate that it presents there, PEM.
    """

    holder: str
    pod: str = ""
    port: int = 0
    certificate: str = ""

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations of the Lease that say so."""
        return {ANNOTATION: msgspec.json.encode(self).decode()}


def own_pod() -> str:
    """Return ``NAMESPACE/NAME`` of the pod that this process runs in; "" outside of pods.

    ``POD_NAMESPACE`` and ``POD_NAME`` say so, by the downward API. Without them it is the namespace
    of the service account and the name of the host, which is another one on the host's network.
    """
    namespace = os.environ.get("POD_NAMESPACE", "")
    if not namespace:
        try:
            namespace = read_file(SERVICE_ACCOUNT_DIR / "namespace").decode().strip()
        except OSError:
            return ""
    return f"{namespace}/{os.environ.get('POD_NAME') or socket.gethostname()}"


def leader_address(lease: dict[str, Any]) -> LeaderAddress | None:
    """Return the address in a Lease; None where its holder is none of moorage, or says nothing.

    Parameters
    ----------
    lease
        The object, as JSON gives it.
    """
    annotations = (lease.get("metadata") or {}).get("annotations") or {}
    try:
        found = msgspec.json.decode(annotations.get(ANNOTATION, ""), type=LeaderAddress)
    except NOT_JSON:
        return None
    holder = (lease.get("spec") or {}).get("holderIdentity")
    return found if found.holder and found.holder == holder else None
