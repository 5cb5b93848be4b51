"""The source of an answer about what-if or capacity: a running scheduler, a file, or lists.

A running scheduler answers from its own state. It keeps only parts of Deployments and their like,
so their manifests are read from the API server and sent along. A file or lists have everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from moorage.api import resources
from moorage.api.codec import decode, decode_untyped
from moorage.api.resources import ResourceType
from moorage.base.errors import ApiError, MoorageError, UsageError
from moorage.cli.ask import SchedulerLink, has_scheduler, read_answer, run_asking
from moorage.cli.explain.source import (
    inputs_over,
    namespace_of,
    objects_of_file,
    objects_of_server,
    take_kinds,
)
from moorage.cli.question_target import QuestionTarget
from moorage.cli.render import show_note
from moorage.cli.served_configuration import (
    ServedConfiguration,
    check_same_cluster,
    note_unserved,
    served_configuration,
)
from moorage.cli.session import Session, run_session
from moorage.config.load import load_config
from moorage.config.own import LoadedConfiguration
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.objects import ClusterObjects
from moorage.virtual.owner_kinds import JOB
from moorage.what_if.rules.policies import not_evaluated
from moorage.what_if.rules.webhooks import WEBHOOK_KINDS, not_called
from moorage.what_if.wire import LIMIT_REASON, Manifest
from moorage.workloads.jobs.job_steps import finished
from moorage.workloads.objects import Whole

A = TypeVar("A", bound=msgspec.Struct)

# What decides about new pods, and what new pods bring along; no scheduler watches it.
_ADMITTING = (
    resources.RESOURCE_QUOTAS,
    resources.LIMIT_RANGES,
    resources.RESOURCE_CLAIM_TEMPLATES,
)
_POLICIES = (
    resources.MUTATING_ADMISSION_POLICIES,
    resources.MUTATING_ADMISSION_POLICY_BINDINGS,
    resources.VALIDATING_ADMISSION_POLICIES,
    resources.VALIDATING_ADMISSION_POLICY_BINDINGS,
)
_OWNERS = (resources.DEPLOYMENTS, resources.DAEMON_SETS, resources.JOBS, *_ADMITTING)
# Their controllers act where nobody scales or deletes them: pods of nodes that come, names of pods.
_ALWAYS_SENT = (resources.STATEFUL_SETS, resources.DAEMON_SETS, resources.JOBS, *_ADMITTING)
_SENT = {
    "Deployment": (resources.DEPLOYMENTS, resources.REPLICA_SETS),
    "ReplicaSet": (resources.REPLICA_SETS,),
    "ReplicationController": (resources.REPLICATION_CONTROLLERS,),
}


_CONFIG_OPTION = "--running-config FILE"
_COUNT_ENDED_JOBS = frozenset({"Job", "ResourceQuota"})


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The options that say what is asked.

    Parameters
    ----------
    to
        The scheduler to ask, and the API server.
    dump
        A file with the objects; None asks a scheduler or a server.
    running_config
        The configuration that the scheduler has now; None asks the scheduler for it.
    seed
        Seed of the draws; None for the draws of the scheduler that is asked, else 0.
    namespace
        The namespace of names without one; empty for that of the context.
    """

    to: QuestionTarget
    dump: Path | None = None
    running_config: Path | None = None
    seed: int | None = None
    namespace: str = ""

    @property
    def chosen_namespace(self) -> str:
        """The namespace of names without one."""
        if self.namespace or self.dump is not None:
            return self.namespace or "default"
        return namespace_of(self.to)

    def running(self) -> LoadedConfiguration:
        """Return the configuration that the scheduler has now.

        Raises
        ------
        ConfigError
            The file has faults.
        MoorageError
            As `served_configuration`.
        """
        return self.served().config

    def served(self) -> ServedConfiguration:
        """Return the configuration that the scheduler has now, its plugins, and whose it is."""
        if self.running_config is not None:
            return ServedConfiguration(
                load_config(self.running_config), (), str(self.running_config)
            )
        if self.dump is not None:
            return ServedConfiguration()
        return served_configuration(self.to, option=_CONFIG_OPTION)

    @property
    def computed_by(self) -> tuple[str, ...]:
        """The given options for which no running scheduler is asked."""
        flags = {
            "--from": self.dump,
            "--running-config": self.running_config,
            "--seed": self.seed,
        }
        return tuple(name for name, value in flags.items() if value is not None)


def source_of(flags: dict[str, Any]) -> Source:
    """Take the options of `moorage.cli.what_if.options` out of all that a command was given."""
    to = QuestionTarget(**{name: flags.pop(name) for name in QuestionTarget.__struct_fields__})
    names = (name for name in Source.__struct_fields__ if name != "to")
    return Source(to=to, **{name: flags.pop(name) for name in names})


def ask_scheduler(
    source: Source,
    path: str,
    body: Callable[[tuple[Manifest, ...]], msgspec.Struct],
    *,
    answer: type[A],
    owners: Iterable[str] = (),
    computed_by: Sequence[str] = (),
) -> tuple[A, str] | None:
    """Ask the scheduler that is named, or the sandbox's; None to compute the answer here.

    Parameters
    ----------
    path
        Of the question.
    body
        Makes the question, given manifests that the scheduler does not have.
    owners
        Kinds of owners that the question is about.
    computed_by
        Given options for which no scheduler is asked.

    Returns
    -------
    tuple or None
        The answer, and the scheduler in words.

    Raises
    ------
    MoorageError
        The scheduler that is named does not answer, or refuses.
    """
    computed_by = (*source.computed_by, *computed_by)
    if computed_by and source.to.is_named:
        raise UsageError(
            "--scheduler and --lease ask a running scheduler, and "
            f"{', '.join(computed_by)} is computed here: leave one of them out"
        )
    if computed_by or not (source.to.is_named or has_scheduler(source.to)):
        return None
    check_same_cluster(source.to)
    question = msgspec.json.encode(body(_manifests(source, owners)))

    async def work(link: SchedulerLink) -> tuple[bytes, str]:
        return await link.post(path, question), link.title

    try:
        reply, title = run_asking(work, source.to)
    except UsageError:
        raise
    except MoorageError as error:
        ended = isinstance(error, ApiError) and error.reason == LIMIT_REASON
        if source.to.is_named or ended:
            raise
        show_note(f"{error}; computed from lists instead")
        return None
    return read_answer(reply, answer), f"From the state of {title}."


def _manifests(source: Source, owners: Iterable[str]) -> tuple[Manifest, ...]:
    """Read the owners of pods from the API server; none where they cannot be read.

    Jobs that have ended make no pods. They are sent only for a change that is about Jobs, or for a
    quota, which counts them.
    """
    kinds: dict[ResourceType, None] = dict.fromkeys(_ALWAYS_SENT)
    owner_kinds = frozenset(owners)
    for owner in sorted(owner_kinds):
        kinds |= dict.fromkeys(_SENT.get(owner, ()))

    async def work(session: Session) -> ClusterObjects:
        objects = ClusterObjects()
        await take_kinds(session, tuple(kinds), objects)
        if not owner_kinds & _COUNT_ENDED_JOBS:
            drop_ended_jobs(objects)
        await _take_admission(session, objects)
        return objects

    to = source.to
    try:
        objects = run_session(work, kubeconfig=to.kubeconfig, context=to.context)
    except MoorageError as error:
        show_note(f"Deployments and their like are not sent along: {error}")
        return ()
    _note_admission(objects)
    for resource in WEBHOOK_KINDS:
        objects.manifests.pop((resource.group, resource.kind), None)
    manifests = (each for known in objects.manifests.values() for each in known.values())
    return tuple(_slim(decode_untyped(each)) for each in manifests)


def drop_ended_jobs(objects: ClusterObjects) -> None:
    """Remove the Jobs that have ended from the objects."""
    jobs = objects.manifests.get(JOB, {})
    for key in [key for key, text in jobs.items() if finished(decode(Whole, text))]:
        del jobs[key]


async def _take_admission(session: Session, objects: ClusterObjects) -> None:
    """Read admission policies and webhooks, which few may list; say what cannot be read."""
    for kinds, name in ((_POLICIES, "policies"), (WEBHOOK_KINDS, "webhooks")):
        try:
            await take_kinds(session, kinds, objects)
        except MoorageError as error:
            show_note(f"admission {name} are not looked at: {error}")


def _note_admission(objects: ClusterObjects) -> None:
    """Name the admission policies and webhooks that are not looked at."""
    for sentence in (*not_evaluated(objects), *not_called(objects)):
        show_note(sentence)


def _slim(manifest: Any) -> Manifest:
    manifest["metadata"].pop("managedFields", None)
    return dict(manifest)


def load(source: Source) -> tuple[ClusterInputs, str]:
    """Load a model from a file or from lists, and say in words which.

    Raises
    ------
    UsageError
        A file cannot be read or used.
    ApiError, TransportError
        The server refuses a list, or cannot be reached.
    """
    if source.dump is None:
        to = source.to
        objects, _namespace = objects_of_server(
            kubeconfig=to.kubeconfig,
            context=to.context,
            namespace=source.namespace,
            more=_OWNERS,
            then=_take_admission,
        )
        source_text = "Computed from lists of the API server"
    else:
        objects = objects_of_file(source.dump)
        source_text = ""
    for each in objects.unreadable:
        show_note(f"{each.text}; it is left out")
    _note_admission(objects)
    served = source.served()
    note_unserved(served, objects.pods.values(), option=_CONFIG_OPTION)
    inputs = inputs_over(objects, served.config, served.plugins)
    return msgspec.structs.replace(
        inputs, seed=source.seed or 0
    ), f"{source_text}, by {served.title}." if source_text else ""
