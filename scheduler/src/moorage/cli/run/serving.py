"""Composes what ``moorage run`` serves: health, metrics and the configuration in force.

`moorage.cli.run.access` composes what guards it.
"""

from __future__ import annotations

import ipaddress
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from moorage.api.codec import encode
from moorage.base.clock import Clock
from moorage.base.errors import UsageError
from moorage.base.rng import Streams
from moorage.cli.run.access import access_of
from moorage.cli.run.answering import CODE
from moorage.config.gate_table import COMPONENT_FLAGZ, COMPONENT_STATUSZ
from moorage.config.own import LoadedConfiguration
from moorage.config.written import documents
from moorage.explain.question import Estimator, explain_question
from moorage.explain.workloads.question import explain_object_question
from moorage.observe.access import AccessFacts
from moorage.observe.exposition import Exposition
from moorage.observe.resources import resources_page
from moorage.observe.slis import HealthFacts
from moorage.service.history.question import history_question
from moorage.service.process.health import HealthServer, Listening, Page, PageMaker, QueryPage
from moorage.service.process.metrics import PLAYED
from moorage.service.process.zpages import flagz, statusz
from moorage.service.questions.answering import AnsweringProcess
from moorage.service.questions.cluster import cluster_question
from moorage.service.questions.configuration import configuration_question
from moorage.service.questions.decisions import decisions_question
from moorage.service.questions.pages import body_pages, question_pages
from moorage.service.questions.plugins import plugins_question
from moorage.service.questions.question import BodyQuestion, Question
from moorage.service.questions.queue import queue_question
from moorage.service.questions.records import records_question
from moorage.service.scheduler import Scheduler
from moorage.service.serving.access import Access
from moorage.what_if.answering.mirrored_state import MirroredState
from moorage.what_if.answering.question import tried_questions

_PORT_MAX = 65535


def _version_of(emulated: str) -> dict[str, str]:
    """Return Go's version as far as a program of Python can say it."""
    major, minor = emulated.split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": PLAYED[emulated],
        "platform": f"{sys.platform}/{platform.machine()}",
    }


def listening_of(flags: Mapping[str, Any], *, free_port: bool = False) -> Listening:
    """Return where to listen, from the flags.

    Raises
    ------
    UsageError
        A flag has a value that cannot be used.
    """
    default = Listening()
    address = flags.get("bind-address", default.address)
    try:
        ipaddress.ip_address(address)
    except ValueError as error:
        raise UsageError(f"--bind-address {address}: must be a valid IP address") from error
    port = flags.get("secure-port", default.port)
    if not 0 <= port <= _PORT_MAX:
        raise UsageError(f"--secure-port {port}: must be between 0 and {_PORT_MAX}")
    return Listening(
        address=address,
        port=port,
        free_port=free_port,
        share_port=flags.get("permit-port-sharing", False),
    )


class Port(msgspec.Struct, frozen=True):
    """The secure port before it serves.

    Parameters
    ----------
    listening
        Where it listens.
    access
        What guards it.
    facts
        The numbers about its callers.
    """

    listening: Listening
    access: Access
    facts: AccessFacts


def port_of(
    flags: Mapping[str, Any], *, clock: Clock, streams: Streams, free_port: bool = False
) -> Port:
    """Return the port that the flags describe.

    Raises
    ------
    UsageError
        A flag has a value that cannot be used, or names a file that cannot be used.
    """
    facts = AccessFacts()
    access = access_of(flags, clock=clock, streams=streams, facts=facts)
    return Port(listening_of(flags, free_port=free_port), access, facts)


class Begun(msgspec.Struct):
    """A scheduler, and what it was begun with.

    Parameters
    ----------
    scheduler
        The scheduler.
    file_config, plugins
        The configuration in force, before ``--plugin`` changed it, and the values of ``--plugin``.
    on_change
        Called when a reload puts another configuration in force.
    """

    scheduler: Scheduler
    file_config: LoadedConfiguration
    plugins: tuple[str, ...] = ()
    on_change: list[Callable[[], None]] = []

    def replace_config(self, config: LoadedConfiguration) -> None:
        """Note the configuration that a reload puts in force."""
        self.file_config = config
        for call in self.on_change:
            call()


def health_server(
    port: Port,
    begun: Begun,
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
    if not (port.listening.port or port.listening.free_port):
        return None
    scheduler = begun.scheduler

    async def configz(accept: str) -> Page:
        del accept
        return Page(
            encode({"componentconfig": documents(scheduler.parts.reload.config)[0]}),
            "application/json",
        )

    # The leaderElection check always passes, as in kube-scheduler: losing the lease ends a process.
    first = "ping" if scheduler.elector is None else "leaderElection"
    elected = [] if scheduler.elector is None else [("leaderElection", _passes)]
    facts, emulated = HealthFacts(), begun.file_config.gates.version

    async def version(accept: str) -> Page:
        del accept
        return Page(encode(_version_of(emulated)), "application/json")

    async def slis(accept: str) -> Page:
        return Page(*facts.page_text(accept))

    checks = {
        "healthz": [(first, _passes)],
        "livez": [("ping", _passes), ("decisions", lambda: scheduler.decides)],
        "readyz": [
            *elected,
            ("shutdown", lambda: not scheduler.ending),
            ("sched-handler-sync", lambda: scheduler.synced),
        ],
    }
    tried, process, estimator = trying(begun, clock)
    queries = answers_of(scheduler, clock, tried, begun, estimator)
    pages = {"/configz": configz, "/metrics/slis": slis, "/version": version, **pages}
    if begun.file_config.gates(COMPONENT_FLAGZ):
        pages["/flagz"] = flagz(flags)
    if begun.file_config.gates(COMPONENT_STATUSZ):
        paths = [*(f"/{path}" for path in checks), *pages, *queries]
        pages["/statusz"] = statusz(clock, paths, emulated=emulated)
    return HealthServer(
        port.listening,
        port.access,
        checks=checks,
        pages=pages,
        facts=facts,
        queries=queries,
        bodies=body_pages(tried, core=scheduler.core),
        on_close=process.close,
    )


def metric_pages(scheduler: Scheduler, metrics: Exposition) -> dict[str, PageMaker]:
    """Return the pages of a scheduler's metrics, by path."""

    async def everything(accept: str) -> Page:
        return Page(*metrics.page_text(accept))

    async def resources(accept: str) -> Page:
        # Only the replica that schedules serves these; otherwise sums over replicas would be wrong.
        return Page(
            *resources_page(scheduler.core.store.all_pods() if scheduler.schedules else (), accept)
        )

    return {"/metrics": everything, "/metrics/resources": resources}


def trying(
    begun: Begun, clock: Clock
) -> tuple[list[BodyQuestion], AnsweringProcess, Estimator | None]:
    """Return the questions that try changes, the process that answers them, and the estimator.

    The process has to be closed. It computes estimates, too, where the configuration asks for them.
    """
    state = MirroredState(
        begun.scheduler, clock, config=lambda: begun.file_config, plugins=begun.plugins
    )
    process = AnsweringProcess(CODE, state)
    begun.on_change.append(process.renew)
    questions = tried_questions(begun.scheduler, clock, state, process)
    questions.append(explain_object_question(begun.scheduler, clock))
    return questions, process, _estimator(begun, clock, state, process)


def _estimator(
    begun: Begun, clock: Clock, state: MirroredState, process: AnsweringProcess
) -> Estimator | None:
    wanted = begun.file_config.own.start_estimates
    observer = None if wanted is None else begun.scheduler.parts.start_observer
    if wanted is None or observer is None:
        return None
    # Imported here: a scheduler without estimates does not pay for it.
    from moorage.what_if.answering.starts import StartEstimator

    return StartEstimator(
        begun.scheduler,
        clock,
        state=state,
        process=process,
        observer=observer,
        seconds=wanted.answer_milliseconds / 1000,
    )


def answers_of(
    scheduler: Scheduler,
    clock: Clock,
    tried: Sequence[BodyQuestion] = (),
    begun: Begun | None = None,
    estimator: Estimator | None = None,
) -> dict[str, QueryPage]:
    """Return the pages that answer questions about a scheduler, by path.

    Parameters
    ----------
    tried
        Questions with a body, which the OpenAPI document describes besides.
    begun
        The scheduler with its configuration, for those who compute answers elsewhere; None for a
        page, which asks no such question.
    estimator
        Estimates when waiting pods start; None where no estimates are asked for.
    """
    questions = questions_of(scheduler, clock, begun, estimator)
    return question_pages(questions, tried, core=scheduler.core)


def questions_of(
    scheduler: Scheduler, clock: Clock, begun: Begun | None, estimator: Estimator | None = None
) -> list[Question]:
    """Return the questions without a body that a scheduler answers."""
    questions = [
        queue_question(scheduler, clock),
        cluster_question(scheduler, clock),
        decisions_question(scheduler, clock),
        history_question(scheduler, clock),
        plugins_question(scheduler, clock),
        records_question(scheduler, clock),
        explain_question(scheduler, clock, estimator),
    ]
    if begun is not None:
        given = configuration_question(scheduler, clock, lambda: begun.file_config, begun.plugins)
        questions.append(given)
    return questions


def _passes() -> bool:
    return True
