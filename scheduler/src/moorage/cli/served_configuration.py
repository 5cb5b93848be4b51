"""The configuration by which an answer is computed here: that of the scheduler of the cluster.

An answer by another configuration would be wrong without a sign of it. So the scheduler is asked
for its configuration; where it cannot be asked, the user has to give the configuration.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from moorage.api.codec import decode_untyped
from moorage.base.clock import NS_PER_SECOND, parse_rfc3339
from moorage.base.errors import KubeconfigError, MoorageError, TransportError, UsageError
from moorage.cli.ask import SchedulerLink, has_scheduler, is_sandbox, proxy_path, run_asking
from moorage.cli.cluster_choice import choose_cluster
from moorage.cli.question_target import QuestionTarget
from moorage.cli.session import Session, run_session
from moorage.client.transport import Call
from moorage.config.own import LoadedConfiguration
from moorage.service.questions.configuration import (
    CLUSTER_NAMESPACE,
    CONFIGURATION,
    ConfigurationAnswer,
    configuration_of,
)
from moorage.service.questions.question import PREFIX

_LEASE: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
_NAMESPACE: Final = f"/api/v1/namespaces/{CLUSTER_NAMESPACE}"


class ServedConfiguration(msgspec.Struct, frozen=True):
    """A configuration, and whose it is.

    Parameters
    ----------
    config
        The configuration, before plugins from outside are enabled.
    plugins
        Plugins from outside, as ``--plugin`` names them.
    title
        Whose it is, in words.
    """

    config: LoadedConfiguration = LoadedConfiguration()
    plugins: Sequence[str] = ()
    title: str = "the default configuration"


def served_configuration(to: QuestionTarget, *, option: str) -> ServedConfiguration:
    """Return the configuration of the scheduler of a cluster.

    Parameters
    ----------
    to
        The scheduler that is named, or the cluster.
    option
        The option by which the user gives the configuration instead.

    Raises
    ------
    MoorageError
        A scheduler is there, and its configuration cannot be read.
    """
    if not (to.is_named or has_scheduler(to)):
        return run_session(
            lambda session: _of_the_lease(session, option),
            kubeconfig=to.kubeconfig,
            context=to.context,
        )

    async def work(link: SchedulerLink) -> tuple[bytes, str]:
        return await link.ask(CONFIGURATION), link.title

    try:
        body, title = run_asking(work, to)
    except UsageError:
        raise
    except MoorageError as error:
        raise _unknown(str(error), option) from error
    return _read(body, title, option, loads_plugins=is_sandbox(to) and not to.is_named)


def check_same_cluster(to: QuestionTarget) -> None:
    """Refuse a scheduler at an address that schedules another cluster than the chosen one.

    Without a cluster, or with one that does not answer, no objects are read besides.

    Raises
    ------
    UsageError
        It does, or one side does not say which cluster it is.
    """
    if not to.scheduler.startswith("http"):
        return
    try:
        choose_cluster(to.kubeconfig, to.context)
    except KubeconfigError:
        if to.kubeconfig or to.context:
            raise
        return

    async def ask(link: SchedulerLink) -> str:
        body = await link.ask(CONFIGURATION)
        return msgspec.json.decode(body, type=ConfigurationAnswer).cluster

    async def look(session: Session) -> tuple[str, str]:
        found = await session.client.read_path(_NAMESPACE)
        metadata: Any = found.get("metadata") or {}
        return str(metadata.get("uid", "")), session.cluster.title

    theirs = run_asking(ask, to)
    try:
        ours, title = run_session(look, kubeconfig=to.kubeconfig, context=to.context)
    except TransportError:
        return
    if not theirs or theirs != ours:
        raise UsageError(
            f"--scheduler {to.scheduler} schedules another cluster than the objects are of "
            f"({title}): name that cluster with --kubeconfig, or leave --scheduler out"
        )


async def _of_the_lease(session: Session, option: str) -> ServedConfiguration:
    """Return the configuration of the scheduler that holds kube-scheduler's lease."""
    holder = await _holder(session)
    if not holder:
        return ServedConfiguration(title="the default configuration: no scheduler holds the lease")
    path = proxy_path("kube-system", holder.rpartition("_")[0])
    fault = ""
    try:
        answer = await session.transport.request(Call("GET", f"{path}{PREFIX}{CONFIGURATION}"))
    except MoorageError as error:
        fault = str(error)
    else:
        if answer.status == 200:
            return _read(answer.body, f"the scheduler {holder}", option, loads_plugins=False)
        fault = f"its pod answers {answer.status}"
    raise _unknown(f"{holder} holds the lease kube-system/kube-scheduler, and {fault}", option)


async def _holder(session: Session) -> str:
    """Return who holds kube-scheduler's lease; "" for nobody, or where that cannot be read."""
    answer = await session.transport.request(Call("GET", _LEASE))
    found: Any = decode_untyped(answer.body) if answer.status == 200 else {}
    spec = found.get("spec") or {}
    with contextlib.suppress(ValueError):
        renewed_ns = parse_rfc3339(str(spec.get("renewTime") or ""))
        seconds = int(spec.get("leaseDurationSeconds") or 0)
        if renewed_ns + seconds * NS_PER_SECOND > session.clock.now_ns():
            return str(spec.get("holderIdentity") or "")
    return ""


def _read(body: bytes, title: str, option: str, *, loads_plugins: bool) -> ServedConfiguration:
    """Read an answer.

    Parameters
    ----------
    loads_plugins
        Whether plugins from outside are loaded here. Nobody but a sandbox of this user may name
        code that is run.
    """
    try:
        answer = msgspec.json.decode(body, type=ConfigurationAnswer)
        config = configuration_of(answer, title)
    except (msgspec.MsgspecError, UsageError) as error:
        raise _unknown(f"{title} answers what cannot be read ({error})", option) from error
    if answer.plugins and not loads_plugins:
        names = ", ".join(answer.plugins)
        raise _unknown(f"{title} runs plugins from outside ({names})", f"{option} and --plugin")
    return ServedConfiguration(config, answer.plugins, f"the configuration of {title}")


def _unknown(text: str, option: str) -> MoorageError:
    return MoorageError(
        f"the configuration of the scheduler is not known: {text}; give it with {option} "
        "(`moorage config defaults` prints the default one)"
    )
