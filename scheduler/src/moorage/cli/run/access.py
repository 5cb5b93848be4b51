"""Composes what guards the secure port, from kube-scheduler's flags.

Notes
-----
Kubernetes v1.36 ``apiserver/pkg/server/options`` (``DelegatingAuthenticationOptions``,
``DelegatingAuthorizationOptions``), with kube-scheduler's defaults: both kubeconfigs are optional.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from moorage.api.schedules.durations import parse_duration
from moorage.base.clock import Clock
from moorage.base.errors import KubeconfigError, UsageError
from moorage.base.rng import Streams
from moorage.cli.run.tls_flags import named_sources, pair_source, tls_rules
from moorage.client.auth import ServerAccess, incluster_access
from moorage.client.http_transport import open_transport
from moorage.client.kubeconfig import find_access
from moorage.client.transport import Transport
from moorage.observe.access import AccessFacts
from moorage.service.serving.access import Access
from moorage.service.serving.authentication import Authenticator
from moorage.service.serving.authorization import AlwaysAllowed, Authorizer
from moorage.service.serving.gate import Gate
from moorage.service.serving.reviews import ACCESS_REVIEW, TOKEN_REVIEW, Reviewer
from moorage.service.serving.tls import ServerTls
from moorage.service.serving.tokens import TokenAuthenticator
from moorage.service.serving.trust import BundleFile, ClusterTrust, ProxyNames, Trust

_log = logging.getLogger(__name__)

ALWAYS_ALLOWED: Final = "/healthz,/readyz,/livez"
_TTL: Final = "10s"
# kube-scheduler's limits for reviews.
_QPS, _BURST = 200, 400


def access_of(
    flags: Mapping[str, Any], *, clock: Clock, streams: Streams, facts: AccessFacts
) -> Access:
    """Return the guard of the port.

    Parameters
    ----------
    flags
        kube-scheduler's flags by name.
    clock, streams
        For certificates and caches, and for the jitter of retries.
    facts
        Counts callers and reviews.

    Raises
    ------
    UsageError
        A flag has a value that cannot be used, or names a file that cannot be used.
    """
    reviews = _Reviews(flags, clock, streams, facts)
    cluster = None
    if reviews.authentication is not None and not flags.get("authentication-skip-lookup", False):
        rng = streams.stream("authorities of callers")
        cluster = ClusterTrust(reviews.authentication, clock=clock, rng=rng)
    trust = _trust(flags, cluster)
    authenticator = Authenticator(trust or Trust, reviews.tokens(), clock=clock)
    return Access(
        ServerTls(
            pair_source(flags, clock), tls_rules(flags), trust, named_sources=named_sources(flags)
        ),
        Gate(authenticator, reviews.authorizer(), facts=facts, clock=clock),
        cluster=cluster,
        tolerant=flags.get("authentication-tolerate-lookup-failure", True),
        transports=reviews.transports,
    )


class _Reviews:
    """The ways to ask the API server about callers."""

    def __init__(
        self, flags: Mapping[str, Any], clock: Clock, streams: Streams, facts: AccessFacts
    ) -> None:
        self._flags = flags
        self._clock = clock
        self._rng = streams.stream("reviews of callers")
        self._facts = facts
        self.authentication = _transport(flags, "authentication", clock)
        self._authorization = _transport(flags, "authorization", clock)

    @property
    def transports(self) -> list[Transport]:
        """The connections that are closed at the end."""
        return [each for each in (self.authentication, self._authorization) if each is not None]

    def tokens(self) -> TokenAuthenticator | None:
        """Return what finds the users of tokens; None where there is no server to ask."""
        if self.authentication is None:
            return None
        reviewer = Reviewer(
            self.authentication,
            TOKEN_REVIEW,
            facts=self._facts.token_reviews,
            clock=self._clock,
            rng=self._rng,
        )
        ttl_ns = self._ttl_ns("authentication-token-webhook-cache-ttl")
        return TokenAuthenticator(reviewer, ttl_ns=ttl_ns, clock=self._clock, facts=self._facts)

    def authorizer(self) -> Authorizer:
        """Return what decides about calls."""
        paths = self._flags.get("authorization-always-allow-paths", ALWAYS_ALLOWED).split(",")
        reviewer = None
        if self._authorization is not None:
            reviewer = Reviewer(
                self._authorization,
                ACCESS_REVIEW,
                facts=self._facts.access_reviews,
                clock=self._clock,
                rng=self._rng,
            )
        return Authorizer(
            AlwaysAllowed([path for path in paths if path]),
            reviewer,
            clock=self._clock,
            allowed_ttl_ns=self._ttl_ns("authorization-webhook-cache-authorized-ttl"),
            refused_ttl_ns=self._ttl_ns("authorization-webhook-cache-unauthorized-ttl"),
        )

    def _ttl_ns(self, flag: str) -> int:
        return parse_duration(self._flags.get(flag, _TTL))


def _transport(flags: Mapping[str, Any], subject: str, clock: Clock) -> Transport | None:
    """Return the way to the server that is asked; None if there is none to ask."""
    access = _server(flags.get(f"{subject}-kubeconfig", ""), subject, clock)
    if access is None:
        return None
    agent = f"moorage-scheduler/{subject}"
    return open_transport(access, clock=clock, qps=_QPS, burst=_BURST, user_agent=agent)


def _server(kubeconfig: str, subject: str, clock: Clock) -> ServerAccess | None:
    if kubeconfig:
        return find_access(kubeconfig, clock=clock)
    try:
        return incluster_access(os.environ, clock=clock)
    except KubeconfigError as error:
        _log.warning("callers are not looked up (%s): %s", subject, error)
        return None


def _trust(flags: Mapping[str, Any], cluster: ClusterTrust | None) -> Callable[[], Trust] | None:
    """Return what knows the authorities of callers; None if there can be none."""
    clients, front = _file(flags, "client-ca-file"), _file(flags, "requestheader-client-ca-file")
    names = proxy_names(flags)
    if cluster is None and clients is None and front is None:
        return None

    def now() -> Trust:
        published = Trust() if cluster is None else cluster.trust
        return Trust(
            published.clients if clients is None else clients.bundle,
            published.front if front is None else front.bundle,
            published.names if front is None else names,
        )

    return now


def _file(flags: Mapping[str, Any], flag: str) -> BundleFile | None:
    path = flags.get(flag, "")
    return BundleFile(Path(path), flag) if path else None


def proxy_names(flags: Mapping[str, Any]) -> ProxyNames:
    """Return the headers of front proxies and their names, from the flags.

    Raises
    ------
    UsageError
        A header is empty.
    """

    def names(flag: str, default: str) -> tuple[str, ...]:
        text = flags.get(flag, default)
        found = tuple(name.strip() for name in text.split(",")) if text else ()
        if "" in found:
            raise UsageError(f"--{flag} {text}: empty value")
        return found

    return ProxyNames(
        names("requestheader-username-headers", "x-remote-user"),
        names("requestheader-group-headers", "x-remote-group"),
        names("requestheader-uid-headers", ""),
        names("requestheader-extra-headers-prefix", "x-remote-extra-"),
        names("requestheader-allowed-names", ""),
    )
