"""Generated pending pods: the planted cause is named first, and every suggestion binds the pod.

In memory a few of each cause run with every suite. The slow test takes twenty of each: each
is explained by a running scheduler's own state, and each suggestion is applied to a cluster of its
own, through the API. ``PLANTED=5000`` takes more.
"""

from __future__ import annotations

import copy
import os
import sys
from collections import Counter

import pytest

from moorage.base.clock import Clock
from moorage.config.own import LoadedConfiguration
from moorage.explain.answer import Suggestion
from moorage.snapshot.pod_info import PodInfo
from moorage.virtual.model import ClusterModel
from moorage_sandbox.testing.builders import Manifest
from scheduler.tests.explain.applying import applied
from scheduler.tests.explain.clusters import explained, inputs_of, pod_of
from scheduler.tests.explain.plan import Case
from scheduler.tests.explain.planted import PLANTED, names_first, planted
from scheduler.tests.explain.running import Started, apply, binds, live
from tests.scenarios.over_https import OverHttps, run_scenario

MANY = int(os.environ.get("PLANTED", str(6 * len(PLANTED))))
ENOUGH = 0.99
ONLY_IN_MEMORY = ("spread_of_nominated",)
"""Kinds that do not last where a scheduler runs: it binds the nominated pods."""
_DEFAULT = "default-scheduler"
OVER_HTTPS = (
    "too_large",
    "no_room",
    "taint",
    "cordon",
    "selector",
    "host_port",
    "claim_of_one_pod",
    "disk_in_use",
    "too_many_volumes",
)


@pytest.mark.parametrize("plant", range(len(PLANTED)), ids=[each.__name__ for each in PLANTED])
def test_in_memory_the_cause_is_named_and_each_suggestion_works(plant: int) -> None:
    for seed in (plant, plant + len(PLANTED), plant + 2 * len(PLANTED)):
        case = planted(seed)
        found = explained(*case.manifests, config=case.config)
        assert names_first(case, found), (seed, found.sentence)
        assert not (found.sentence.startswith("never") and _waits_only(case)), found.sentence
        for way in found.suggestions:
            assert _place(applied(way, case.manifests), case.config), (seed, way.text)
            assert _can_be_done(way, case), (seed, way.text)


def _waits_only(case: Case) -> bool:
    """Whether the pod fits once other pods are gone and nodes are open: waiting may cure it."""
    left = []
    for each in copy.deepcopy(case.manifests):
        owners = each["metadata"].get("ownerReferences", [])
        stays = any(owner["kind"] == "DaemonSet" for owner in owners)
        if each["kind"] == "Pod" and "nodeName" in each["spec"] and not stays:
            continue
        if each["kind"] == "Node":
            taints = each["spec"].get("taints", [])
            own = [one for one in taints if not one["key"].startswith("node.kubernetes.io/")]
            each["spec"] |= {"taints": own, "unschedulable": False}
        left.append(each)
    return bool(_place(left, case.config))


def _can_be_done(way: Suggestion, case: Case) -> bool:
    """Whether an API server takes the change, as far as that is a rule about its form."""
    there = [each for each in case.manifests if each["kind"] == "PriorityClass"]
    polite = {each["metadata"]["name"] for each in there if "preemptionPolicy" in each}
    classes = {each["metadata"]["name"] for each in (*there, *way.create)} - polite
    patch = {each["path"]: each.get("value") for each in way.patch}
    if "/spec/priority" in patch and patch.get("/spec/priorityClassName") not in classes:
        return False
    (pod,) = (each for each in applied(way, case.manifests) if each["metadata"]["name"] == "p")
    return not any(
        each["whenUnsatisfiable"] == "ScheduleAnyway" and "minDomains" in each
        for each in pod["spec"].get("topologySpreadConstraints", [])
    )


def test_every_default_plugin_that_may_hold_a_pod_has_a_planted_cause() -> None:
    """A plugin that joins the default profile needs a family of its own."""
    profile = inputs_of(planted(0).manifests[0]).fill().core.profiles[_DEFAULT]
    asked = (*profile.pre_enqueue, *profile.pre_filters, *profile.filters)
    left = {str(getattr(each, "name", "")) for each in asked}
    for plant in range(len(PLANTED)):
        case = planted(plant)
        found = explained(*case.manifests, config=case.config)
        for plugin in sorted(left):
            first = found.causes and plugin in found.causes[0].plugins
            if first or f"by plugin {plugin}:" in found.sentence:
                left.remove(plugin)
    # A pod that names its node is not queued; preemption holds a pod while it evicts for it.
    assert left == {"NodeName", "DefaultPreemption"}


def _place(manifests: list[Manifest], config: LoadedConfiguration) -> str:
    """Return the node that pod ``p`` gets, its victims gone; "" for none."""
    inputs = inputs_of(*manifests, config=config)
    if inputs.fill().core.snapshot.groups.terms_of(pod_of(inputs, "p")) is not None:
        model = ClusterModel(inputs)
        model.settle()  # members are placed together
        return model.objects.pods["default", "p"].spec.node_name
    decision = inputs.fill().core.cycles[_DEFAULT].decide(PodInfo(pod_of(inputs, "p")))
    gone = {victim.full_name for victim in decision.victims}
    if decision.node_name or not gone:
        return decision.node_name
    left = [
        each
        for each in manifests
        if f"{each['metadata'].get('namespace')}/{each['metadata']['name']}" not in gone
    ]
    return _place(left, config)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_through_the_api_the_cause_is_named_and_each_suggestion_binds_the_pod() -> None:
    named, misses, failed = 0, [], []
    ways: Counter[str] = Counter()
    cases = [case for seed in range(MANY) if (case := planted(seed)).kind not in ONLY_IN_MEMORY]
    for seed, case in enumerate(cases):
        found = live(case)
        named += names_first(case, found)
        if not names_first(case, found):
            misses.append((seed, case.kind, found.sentence))
        for way in found.suggestions:
            ways[way.kind] += 1
            if not binds(case, way):
                failed.append((seed, case.kind, way.text))
    told = f"{named} of {len(cases)} named first; suggestions applied: {dict(sorted(ways.items()))}"
    sys.stdout.write(f"\n{told}\n")
    assert failed == []
    assert named >= ENOUGH * len(cases), misses
    assert sum(ways.values()) > MANY // 2, ways


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", OVER_HTTPS)
def test_over_https_each_suggestion_binds_the_pod(kind: str) -> None:
    """A smaller number, because time is real here."""
    case = planted([each.__name__ for each in PLANTED].index(kind))
    found = explained(*case.manifests)
    assert found.suggestions
    for way in found.suggestions:
        assert _binds_over_https(case, way), way.text


def _binds_over_https(case: Case, way: Suggestion) -> bool:
    """Whether the pod is bound after a suggestion was applied over HTTPS."""

    async def main(clock: Clock) -> bool:
        async with Started(case, clock, OverHttps) as cluster:
            await apply(cluster, case, way)
            await cluster.until(lambda: bool(cluster.node_of("p")))
            return True

    return run_scenario(main, https=True)
