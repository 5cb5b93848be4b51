"""Composes what ``moorage run`` serves: health, metrics and the configuration in force."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

from moorage.api.codec import encode
from moorage.base.clock import Clock
from moorage.base.errors import UsageError
from moorage.config.feature_gates import COMPONENT_FLAGZ, COMPONENT_STATUSZ
from moorage.config.own import LoadedConfiguration
from moorage.config.written import documents
from moorage.explain.question import explain_question
from moorage.observe.exposition import Exposition
from moorage.observe.resources import resources_page
from moorage.observe.slis import HealthFacts
from moorage.service.health import ALWAYS_ALLOWED, HealthServer, Page, PageMaker, QueryPage, Serving
from moorage.service.questions.pages import question_pages
from moorage.service.questions.queue import queue_question
from moorage.service.questions.records import records_question
from moorage.service.scheduler import Scheduler
from moorage.service.zpages import flagz, statusz

_TLS_VERSIONS = {
    "": ssl.TLSVersion.TLSv1_2,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}


def serving_of(given: Mapping[str, Any], *, free_port: bool = False) -> Serving:
    """Return the address and TLS settings to serve with, from the flags.

    Raises
    ------
    UsageError
        A flag has a value that cannot be used.
    """
    version = given.get("tls-min-version", "")
    if version not in _TLS_VERSIONS:
        raise UsageError(f"--tls-min-version {version}: write VersionTLS12 or VersionTLS13")
    certificate, key = given.get("tls-cert-file", ""), given.get("tls-private-key-file", "")
    if bool(certificate) != bool(key):
        raise UsageError("--tls-cert-file and --tls-private-key-file are given both or not at all")
    default = Serving()
    paths = given.get("authorization-always-allow-paths")
    return Serving(
        address=given.get("bind-address", default.address),
        port=given.get("secure-port", default.port),
        free_port=free_port,
        certificate_file=certificate,
        key_file=key,
        tls_version_min=_TLS_VERSIONS[version],
        open_paths=ALWAYS_ALLOWED if paths is None else tuple(filter(None, paths.split(","))),
    )


def health_server(
    serving: Serving,
    scheduler: Scheduler,
    config: LoadedConfiguration,
    clock: Clock,
    pages: Mapping[str, PageMaker],
    *,
    flags: Mapping[str, str],
) -> HealthServer | None:
    """Return the HTTP server of a scheduler; None if it should not serve.

    Parameters
    ----------
    pages
        Pages besides the health checks, ``/configz``, the pages about the process and the answers
        about the scheduler.
    flags
        kube-scheduler's flags as they are in force.
    """
    if not (serving.port or serving.free_port):
        return None

    async def configz(accept: str) -> Page:
        del accept
        return Page(encode({"componentconfig": documents(config)[0]}), "application/json")

    # The leaderElection check always passes, as in kube-scheduler: losing the lease ends a process.
    first = "ping" if scheduler.elector is None else "leaderElection"
    elected = [] if scheduler.elector is None else [("leaderElection", _passes)]
    told = HealthFacts()

    async def slis(accept: str) -> Page:
        return Page(*told.text(accept))

    checks = {
        "healthz": [(first, _passes)],
        "livez": [("ping", _passes)],
        "readyz": [
            *elected,
            ("shutdown", lambda: not scheduler.ending),
            ("sched-handler-sync", lambda: scheduler.synced),
        ],
    }
    queries = answers_of(scheduler, clock)
    pages = {"/configz": configz, "/metrics/slis": slis, **pages}
    if config.gates(COMPONENT_FLAGZ):
        pages["/flagz"] = flagz(flags)
    if config.gates(COMPONENT_STATUSZ):
        pages["/statusz"] = statusz(clock, [*(f"/{path}" for path in checks), *pages, *queries])
    return HealthServer(
        serving,
        lambda: _own_certificate(clock),
        checks=checks,
        pages=pages,
        told=told,
        queries=queries,
    )


def metric_pages(scheduler: Scheduler, metrics: Exposition) -> dict[str, PageMaker]:
    """Return the pages of a scheduler's metrics, by path."""

    async def everything(accept: str) -> Page:
        return Page(*metrics.text(accept))

    async def resources(accept: str) -> Page:
        # Only the replica that schedules serves these; otherwise sums over replicas would be wrong.
        leads = scheduler.elector is None or scheduler.elector.leading
        return Page(*resources_page(scheduler.core.store.all() if leads else (), accept))

    return {"/metrics": everything, "/metrics/resources": resources}


def answers_of(scheduler: Scheduler, clock: Clock) -> dict[str, QueryPage]:
    """Return the pages that answer questions about a scheduler, by path."""
    return question_pages(
        [
            queue_question(scheduler, clock),
            records_question(scheduler, clock),
            explain_question(scheduler, clock),
        ]
    )


def _passes() -> bool:
    return True


def _own_certificate(clock: Clock) -> tuple[bytes, bytes]:
    from moorage.apiserver.certs import Authority

    pair = Authority(clock).server_pair(("localhost", "127.0.0.1", "::1"))
    return pair.certificate, pair.key
