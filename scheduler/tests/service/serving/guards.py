"""Guards of the port for tests: paths that are open, with nobody to ask about the others."""

from __future__ import annotations

from moorage.base.certificates import Authority
from moorage.base.clock import SystemClock
from moorage.observe.access import AccessFacts
from moorage.service.serving.access import Access
from moorage.service.serving.authentication import Authenticator
from moorage.service.serving.authorization import AlwaysAllowed, Authorizer
from moorage.service.serving.gate import Gate
from moorage.service.serving.tls import MadePair, Pair, ServerTls, TlsRules
from moorage.service.serving.trust import Trust


def own_pair() -> MadePair:
    """Return a certificate made in memory."""
    made = Authority(SystemClock()).server_pair()
    return MadePair(Pair(made.certificate, made.key))


def open_access(*paths: str, rules: TlsRules | None = None) -> Access:
    """Return a guard that lets everybody read some paths, and nobody the others."""
    clock = SystemClock()
    gate = Gate(
        Authenticator(Trust, None, clock=clock),
        Authorizer(AlwaysAllowed(paths), clock=clock, allowed_ttl_ns=0, refused_ttl_ns=0),
        facts=AccessFacts(),
        clock=clock,
    )
    return Access(ServerTls(own_pair(), rules or TlsRules()), gate)
