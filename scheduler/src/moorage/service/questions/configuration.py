"""Whose pods a scheduler schedules, and how: the answer of ``/moorage/v1/configuration``.

Whoever computes an answer elsewhere needs the same configuration, and the same cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from moorage.base.clock import Clock, rfc3339_micro
from moorage.config.load import parse_config
from moorage.config.own import LoadedConfiguration, emulating
from moorage.config.written import documents
from moorage.service.questions.question import Answer, Question, QuestionParameters
from moorage.service.scheduler import Scheduler

CONFIGURATION: Final = "/configuration"
"""The path of the question."""
CLUSTER_NAMESPACE: Final = "kube-system"
"""Every cluster has this namespace, and its uid is the cluster's identity."""


class ConfigurationAnswer(Answer, frozen=True, kw_only=True, rename="camel"):
    """The configuration in force, and the cluster.

    Parameters
    ----------
    cluster
        The uid of the namespace kube-system; empty where the scheduler cannot see it.
    documents
        Both documents of the configuration, with everything spelled out.
    feature_gates
        The feature gates that were set, as the flag spells them.
    unschedulable_seconds_max
        How long a pod waits for an event at most; null for the default.
    plugins
        Plugins from outside, as ``--plugin`` names them.
    """

    kind: str = "Configuration"
    cluster: str
    documents: tuple[dict[str, Any], ...]
    feature_gates: str
    unschedulable_seconds_max: float | None
    plugins: tuple[str, ...]


def configuration_question(
    scheduler: Scheduler,
    clock: Clock,
    config_now: Callable[[], LoadedConfiguration],
    plugins: tuple[str, ...],
) -> Question:
    """Return the question which configuration is in force.

    Parameters
    ----------
    config_now
        Returns the configuration in force, before ``--plugin`` changed it.
    plugins
        Values of ``--plugin``.
    """

    async def ask(parameters: QuestionParameters) -> ConfigurationAnswer:
        del parameters
        config = config_now()
        home = scheduler.core.snapshot.listers.namespaces.get(CLUSTER_NAMESPACE)
        longest = config.unschedulable_ns_max
        return ConfigurationAnswer(
            time=rfc3339_micro(clock.now_ns()),
            scheduling=scheduler.schedules,
            cluster="" if home is None else home.metadata.uid,
            documents=tuple(documents(config)),
            feature_gates=config.gates.as_text(),
            unschedulable_seconds_max=None if longest is None else longest / 1e9,
            plugins=plugins,
        )

    return Question(
        path=CONFIGURATION,
        summary="The configuration in force, and the cluster whose pods are scheduled",
        answer=ConfigurationAnswer,
        ask=ask,
    )


def configuration_of(answer: ConfigurationAnswer, source: str) -> LoadedConfiguration:
    """Return the configuration of an answer, as a file with it would be read.

    Raises
    ------
    ConfigError
        It cannot be read: the scheduler is of another version.
    """
    text = "\n---\n".join(msgspec.json.encode(each).decode() for each in answer.documents)
    longest = answer.unschedulable_seconds_max
    return msgspec.structs.replace(
        emulating(parse_config(text, source=source), gates=answer.feature_gates),
        unschedulable_ns_max=None if longest is None else round(longest * 1e9),
    )
