"""Who may write, by what the server accepted: no scheduler is asked whether it leads."""

from __future__ import annotations

import msgspec

from moorage.api.codec import decode_untyped
from moorage.base.clock import NS_PER_SECOND
from moorage.client.transport import Answer, Call

# The duration of the lease in every set-up, as in Kubernetes.
_LEASE_NS = 15 * NS_PER_SECOND
_LEASES = "/leases"


class _Holder(msgspec.Struct, frozen=True):
    by: str
    at_ns: int


class LeaseCheck:
    """The right to write: of the last scheduler whose write of the Lease the server accepted.

    A user who writes another holder into the Lease takes nobody's right away before the leader can
    know of it, so only what schedulers write counts.
    """

    def __init__(self) -> None:
        self._holder: _Holder | None = None
        self._over: set[str] = set()

    def end_holder(self, identity: str) -> None:
        """Take in that a scheduler has ended; the next one may have begun before."""
        self._over.add(identity)

    def observe_write(self, identity: str, call: Call, answer: Answer | None, now_ns: int) -> bool:
        """Take in what the server answered to a write of a scheduler, if it is about the Lease.

        Returns
        -------
        bool
            Whether the scheduler gave the Lease up.
        """
        if _LEASES not in call.path or answer is None or answer.status >= 400:
            return False
        holder = (decode_untyped(answer.body).get("spec") or {}).get("holderIdentity")
        self._holder = _Holder(identity, now_ns) if holder == identity else None
        return not holder

    def missing(self, identity: str, now_ns: int) -> str:
        """Return why a scheduler may not write now, "" if it may."""
        if identity in self._over:
            return "it has ended"
        holder = self._holder
        if holder is None:
            return "nobody holds the lease"
        if holder.by != identity:
            return f"{holder.by} holds the lease"
        age_ns = now_ns - holder.at_ns
        return f"its lease is {age_ns / NS_PER_SECOND:.1f} s old" if age_ns > _LEASE_NS else ""
