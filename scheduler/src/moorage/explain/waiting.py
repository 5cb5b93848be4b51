"""The rejections that waiting may cure, also of empty nodes: closed nodes, partners, devices.

"Never" is said only of rejections that last. A cordon, a condition of the node, a pod to be near
to, a device that no driver offers yet or a volume that is not there yet may change without any
change of the pod or of its nodes' shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import numpy as np

from moorage.engine.inquiry import BoolArray, Inquiry
from moorage.explain.devices import claims_of, rows_without_class
from moorage.explain.node_facts import closing_conditions
from moorage.explain.offers import offers_may_come, resources_of_classes
from moorage.explain.pod_facts import affinity_terms
from moorage.explain.volumes import drivers_may_come, volumes_may_come
from moorage.framework.status import Code
from moorage.framework.subjects import Subject


def lasting_rejections(inquiry: Inquiry, rejects: Mapping[str, BoolArray]) -> dict[str, BoolArray]:
    """Return the rejections of empty nodes that waiting does not cure, by plugin.

    Parameters
    ----------
    inquiry
        All answers.
    rejects
        Plugin to bool, (nodes,): the rows that it rejects when they are empty.
    """
    lasting = {}
    for plugin, rejected_n in rejects.items():
        subject = inquiry.subject(plugin)
        passing = None if subject is None else _PASSING.get(subject)
        lasting[plugin] = rejected_n
        if passing is not None and rejected_n.any():
            lasting[plugin] = rejected_n & ~passing(inquiry, plugin)
    return {plugin: lasting_n for plugin, lasting_n in lasting.items() if lasting_n.any()}


def one_cordon(inquiry: Inquiry, rejects: Mapping[str, BoolArray]) -> dict[str, BoolArray]:
    """Return rejections with a cordon and the taint that comes with it counted as one."""
    _, cordons_n = closing_conditions(inquiry)
    twice_n = cordons_n & inquiry.rejects_about(Subject.CORDON)
    found = {
        plugin: rejected_n & ~twice_n if inquiry.subject(plugin) is Subject.TAINTS else rejected_n
        for plugin, rejected_n in rejects.items()
    }
    return {plugin: rejected_n for plugin, rejected_n in found.items() if rejected_n.any()}


def _all(inquiry: Inquiry, plugin: str) -> BoolArray:
    del plugin
    return np.ones(inquiry.snapshot.num_nodes, np.bool_)


def _taints(inquiry: Inquiry, plugin: str) -> BoolArray:
    del plugin
    conditions_n, _ = closing_conditions(inquiry)
    return conditions_n


def _affinity(inquiry: Inquiry, plugin: str) -> BoolArray:
    """Return bool, (nodes,): rows with the labels of all terms, which lack only a partner."""
    answer, snapshot = inquiry.answers.get(plugin), inquiry.snapshot
    if answer is None:
        return np.zeros(snapshot.num_nodes, np.bool_)
    passing_n: BoolArray = answer.code_n == np.uint8(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
    keys = [term.topology_key for term in affinity_terms(inquiry.attempt.pod.pod)]
    for row in np.flatnonzero(passing_n).tolist():
        labels = snapshot.node(row).metadata.labels
        passing_n[row] = all(key in labels for key in keys)
    return passing_n


def _devices(inquiry: Inquiry, plugin: str) -> BoolArray:
    """Return bool, (nodes,): rows for which no driver offers any device."""
    claims = claims_of(inquiry.attempt.pod.pod, inquiry.snapshot)
    asks = claims or resources_of_classes(inquiry)
    if not asks or any(each.status.allocation is not None for each in claims):
        return np.zeros(inquiry.snapshot.num_nodes, np.bool_)
    return rows_without_class(inquiry, plugin)


def _resources(inquiry: Inquiry, plugin: str) -> BoolArray:
    del plugin
    return offers_may_come(inquiry)


def _volumes(inquiry: Inquiry, plugin: str) -> BoolArray:
    """Return bool, (nodes,): rows whose reasons are about volumes that may still come."""
    return _by_reasons(inquiry, plugin, volumes_may_come)


def _volume_use(inquiry: Inquiry, plugin: str) -> BoolArray:
    """Return bool, (nodes,): rows whose reasons are about drivers that may still come."""
    return _by_reasons(inquiry, plugin, drivers_may_come)


def _by_reasons(
    inquiry: Inquiry, plugin: str, may_come: Callable[[Inquiry, Iterable[str]], bool]
) -> BoolArray:
    answer, n = inquiry.answers.get(plugin), inquiry.snapshot.num_nodes
    if answer is None:
        return np.zeros(n, np.bool_)
    table = inquiry.attempt.profile.handle.reasons
    ids = np.unique(answer.reason_n).tolist()
    coming = [each for each in ids if may_come(inquiry, table.reasons(each))]
    coming_n: BoolArray = np.isin(answer.reason_n, coming)
    return coming_n


_PASSING: Final[dict[Subject, Callable[[Inquiry, str], BoolArray]]] = {
    Subject.CORDON: _all,
    Subject.TAINTS: _taints,
    Subject.POD_AFFINITY: _affinity,
    Subject.DEVICES: _devices,
    Subject.RESOURCES: _resources,
    Subject.VOLUMES: _volumes,
    Subject.VOLUME_USE: _volume_use,
}
