"""The configuration by which an answer is computed here: that of the scheduler of the cluster.

An answer by another configuration would be wrong without a sign of it. So the scheduler is asked
for its configuration; where it cannot be asked, the user has to give the configuration.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from moorage.api.codec import decode_untyped
from moorage.api.pod import Pod
from moorage.api.resources import LEASES as LEASE_OBJECTS
from moorage.api.resources import resource_path
from moorage.base.clock import NS_PER_SECOND, parse_rfc3339
from moorage.base.errors import KubeconfigError, MoorageError, TransportError, UsageError
from moorage.cli.ask import SchedulerLink, has_scheduler, is_sandbox, proxy_path, run_asking
from moorage.cli.cluster_choice import choose_cluster
from moorage.cli.question_target import QuestionTarget
from moorage.cli.render import show_note
from moorage.cli.session import Session, run_session
from moorage.client.leaders.finding import LEASES
from moorage.client.transport import Call
from moorage.config.defaults import DEFAULT_SCHEDULER_NAME
from moorage.config.own import LoadedConfiguration
from moorage.service.questions.configuration import (
    CLUSTER_NAMESPACE,
    CONFIGURATION,
    ConfigurationAnswer,
    configuration_of,
)
from moorage.service.questions.question import PREFIX

_NOBODY: Final = f"no scheduler holds the Lease {' or '.join(map('/'.join, LEASES))}"
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
    why_assumed
        Why the default configuration is assumed; "" for one that was read.
    """

    config: LoadedConfiguration = LoadedConfiguration()
    plugins: Sequence[str] = ()
    title: str = "the default configuration"
    why_assumed: str = ""

    def unserved(self, names: Iterable[str]) -> Sequence[str]:
        """Return those of some schedulerNames whose scheduler is not known, each name once.

        Where no configuration was read, another scheduler may have a profile of that name.
        """
        return sorted(set(names) - {DEFAULT_SCHEDULER_NAME}) if self.why_assumed else ()


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
        raise unknown_configuration(str(error), option) from error
    return _read(body, title, option, loads_plugins=is_sandbox(to) and not to.is_named)


def note_unserved(served: ServedConfiguration, pods: Iterable[Pod], *, option: str) -> None:
    """Say which pods get no node in an answer, because their scheduler is not known."""
    if names := served.unserved(pod.spec.scheduler_name for pod in pods):
        show_note(
            f"pods of schedulerName {', '.join(names)} get no node in the answer, because "
            f"{served.why_assumed}; give the configuration of their scheduler with {option}"
        )


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
    """Return the configuration of the first scheduler that holds one of the usual Leases."""
    for namespace, name in LEASES:
        holder = await _holder(session, namespace, name)
        if holder:
            return await _of_holder(session, option, namespace, name, holder)
    return ServedConfiguration(title=f"the default configuration: {_NOBODY}", why_assumed=_NOBODY)


async def _of_holder(
    session: Session, option: str, namespace: str, name: str, holder: str
) -> ServedConfiguration:
    """Return the configuration of the scheduler that holds a Lease."""
    path = proxy_path(namespace, holder.rpartition("_")[0])
    fault = ""
    try:
        answer = await session.transport.request(Call("GET", f"{path}{PREFIX}{CONFIGURATION}"))
    except MoorageError as error:
        fault = str(error)
    else:
        if answer.status == 200:
            return _read(answer.body, f"the scheduler {holder}", option, loads_plugins=False)
        fault = f"its pod answers {answer.status}"
    raise unknown_configuration(f"{holder} holds the Lease {namespace}/{name}, and {fault}", option)


async def _holder(session: Session, namespace: str, name: str) -> str:
    """Return who holds a Lease; "" for nobody, or where that cannot be read."""
    path = resource_path(LEASE_OBJECTS, namespace, name)
    answer = await session.transport.request(Call("GET", path))
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
        raise unknown_configuration(
            f"{title} answers what cannot be read ({error})", option
        ) from error
    if answer.plugins and not loads_plugins:
        names = ", ".join(answer.plugins)
        raise unknown_configuration(
            f"{title} runs plugins from outside ({names})", f"{option} and --plugin"
        )
    return ServedConfiguration(config, answer.plugins, f"the configuration of {title}")


def unknown_configuration(text: str, option: str) -> MoorageError:
    """Return the refusal to compute an answer, with the option that helps."""
    return MoorageError(
        f"the configuration of the scheduler is not known: {text}; give it with {option} "
        "(`moorage config defaults` prints the default one)"
    )
