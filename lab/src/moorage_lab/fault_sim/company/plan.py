"""The plain plan: how many evictions pods need that come at one moment, in a quiet cluster.

The plan is one recomputation by a scheduler that has just been started, over the objects as they
were when the pods came. There is no company: a victim is gone at once, and nobody makes a pod of
the lowest priority again. So nothing can take the room that an eviction made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import msgspec

from moorage.api.codec import encode
from moorage.api.pod import Pod
from moorage.api.resources import CORE_EVENTS, EVENTS, LEASES, NODES, PODS
from moorage.nodeshapes.annotations import STOP_SECONDS
from moorage.plugins.in_tree import in_tree_registry
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.model import ClusterModel, Eviction
from moorage.virtual.objects import ClusterObjects
from moorage_lab.fault_sim.company.play import CompanyRun
from moorage_lab.fault_sim.company.setups import configuration
from moorage_lab.fault_sim.company.world import WAVE_LABEL, Wave
from moorage_lab.fault_sim.history import Obj, name_of, node_of, nominated_of, priority_of
from moorage_sandbox.storage.record import Record
from moorage_sandbox.storage.store import Store
from moorage_sandbox.storage.watch_log import Change

_UNREAD = frozenset(each.qualified for each in (CORE_EVENTS, EVENTS, LEASES))
# Members of a wave that controllers make are there by then.
_GATHERING_SECONDS = 2.0
_SECONDS = 120.0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The evictions and the waiting pods of one recomputation for a wave.

    Parameters
    ----------
    evictions
        Pods that are evicted for pods of a wave.
    waiting
        Uids of the pods of this wave and of earlier ones that find no place.
    """

    evictions: int
    waiting: frozenset[str] = frozenset()


def plan_of(run: CompanyRun, wave: Wave, *, seed: int = 1, in_turn: bool = False) -> Plan:
    """Return the plain plan for a wave.

    Parameters
    ----------
    run
        A world that was played.
    wave
        The pods that come.
    seed
        Decides among equally good nodes.
    in_turn
        Whether each group comes once those before it are placed. Groups of equal priority may not
        all fit, so their order decides.
    """
    objects = _objects(_objects_with_wave(run, wave))
    unbound = _unbound_of_waves(objects)
    comers = _taken_out(objects, wave) if in_turn else []
    model = fresh_scheduler(run, objects, seed=seed)
    model.settle(within_seconds=_SECONDS)
    for pods in comers:
        for pod in pods:
            model.add_pod(pod)
        model.settle(within_seconds=_SECONDS)
    return Plan(
        evictions=sum(_is_for_wave(each) for each in model.evictions.values()),
        waiting=unbound.difference(model.bound),
    )


def later_plan(run: CompanyRun, version: int) -> Plan:
    """Return the plan for the pods that wait at a version of the server.

    Pods that wait at Permit then are on the nodes whose room they have.
    """
    objects = _objects(_objects_at(run.store, version, _with_places))
    unbound = _unbound_of_waves(objects)
    model = fresh_scheduler(run, objects, seed=run.world.seed)
    model.settle(within_seconds=_SECONDS)
    return Plan(
        evictions=sum(_is_for_wave(each) for each in model.evictions.values()),
        waiting=unbound.difference(model.bound),
    )


def own_evictions(run: CompanyRun, version: int, app: str) -> int:
    """Return what a plan evicts for one group, or at most for one pod of a workload, at a version.

    It is planned alone: other pods of waves have the room of their nominated nodes, or do not come.
    """

    def alone(pods: list[Obj]) -> list[Obj]:
        for pod in _with_places(pods):
            if not node_of(pod) and nominated_of(pod) and _is_rival(pod, app):
                pod["spec"]["nodeName"] = nominated_of(pod)
        return [pod for pod in pods if node_of(pod) or not _is_rival(pod, app)]

    objects = _objects(_objects_at(run.store, version, alone))
    model = fresh_scheduler(run, objects, seed=run.world.seed)
    model.settle(within_seconds=_SECONDS)
    counts = Counter(
        each.by.uid
        for each in model.evictions.values()
        if each.by and each.by.metadata.labels.get("app") == app
    )
    if any(group.name == app for group in run.world.groups):
        return counts.total()
    return max(counts.values(), default=0)


def _is_rival(pod: Obj, app: str) -> bool:
    """Return whether a pod came with a wave, and is of another group or workload."""
    labels = pod["metadata"].get("labels", {})
    return WAVE_LABEL in labels and labels.get("app") != app


def _is_for_wave(eviction: Eviction) -> bool:
    return eviction.by is not None and WAVE_LABEL in eviction.by.metadata.labels


def _unbound_of_waves(objects: ClusterObjects) -> frozenset[str]:
    """Return the uids of the pods of waves that have no node."""
    return frozenset(
        pod.uid
        for pod in objects.pods.values()
        if WAVE_LABEL in pod.metadata.labels and not pod.spec.node_name
    )


def _with_places(pods: list[Obj]) -> list[Obj]:
    """Put the pods that wait at Permit on their nodes: they are nominated, and not rejected."""
    for pod in pods:
        conditions = pod.get("status", {}).get("conditions") or ()
        rejected = any(
            each["type"] == "PodScheduled" and each["status"] == "False" for each in conditions
        )
        if nominated_of(pod) and not rejected:
            pod["spec"]["nodeName"] = nominated_of(pod)
    return pods


def _taken_out(objects: ClusterObjects, wave: Wave) -> list[list[Pod]]:
    """Take the pods of a wave out of the objects; return them by group, in the order of coming."""
    groups: dict[str, list[Pod]] = {}
    for pod in list(objects.pods.values()):
        if pod.metadata.labels.get(WAVE_LABEL) == str(wave.number) and not pod.spec.node_name:
            groups.setdefault(pod.metadata.labels["app"], []).append(pod)
            objects.drop_pod(pod.key)
    return list(groups.values())


def fresh_scheduler(run: CompanyRun, objects: ClusterObjects, *, seed: int) -> ClusterModel:
    """Return a scheduler that has just been started over some objects of a world."""
    return ClusterModel(
        ClusterInputs(
            objects=objects,
            registry=in_tree_registry(),
            config=configuration(run.world.setup),
            seed=seed,
            now_ns=run.now_ns,
        )
    )


def final_objects(run: CompanyRun) -> ClusterObjects:
    """Return the objects that a scheduler reads, as they are at the end.

    Pods that wait at Permit are on the nodes whose room they have, with the devices that they have.
    """
    shelves = run.store.shelves()
    return _objects(
        run.permit_claims.get(record.uid) or _at_place(record, run.permit_places)
        for resource in _read_resources(run.store)
        for record in shelves[resource].records()
    )


def _at_place(record: Record, places: Mapping[str, str]) -> bytes:
    item = record.decode()
    place = places.get(item["metadata"]["uid"])
    if place is None:
        return record.data
    item["spec"]["nodeName"] = place
    return encode(item)


def _objects(data: Iterable[bytes]) -> ClusterObjects:
    objects = ClusterObjects()
    for each in data:
        objects.add_json(each)
    return objects


def _read_resources(store: Store) -> list[str]:
    """Return the resources of which a scheduler reads objects."""
    return [resource for resource in store.shelves() if resource not in _UNREAD]


def _objects_at(
    store: Store, version: int, change_pods: Callable[[list[Obj]], list[Obj]] = list
) -> Iterator[bytes]:
    """Yield the objects of a version; its pods are changed first, and stop at once."""
    nodes = _node_names(store, version)
    for resource in _read_resources(store):
        records = store.records_at(resource, version) or ()
        if resource == PODS.qualified:
            yield from _quiet_pods(change_pods([record.decode() for record in records]), nodes)
        else:
            yield from (record.data for record in records)


def _objects_with_wave(run: CompanyRun, wave: Wave) -> Iterator[bytes]:
    """Yield the objects from before a wave, and those that came with the wave."""
    store, before = run.store, run.wave_versions[wave.number]
    until = run.version_at(wave.at + _GATHERING_SECONDS)
    nodes = _node_names(store, before)

    def with_comers(pods: list[Obj]) -> list[Obj]:
        # The pods of a node that is gone are removed before long. Elastic quotas count them
        # until then, as upstream does, so other pods go in their place.
        if "elastic-quota" not in run.world.features:
            pods = [pod for pod in pods if not node_of(pod) or node_of(pod) in nodes]
        return [*pods, *_comers(store, wave, before, until)]

    yield from _objects_at(store, before, with_comers)
    decided = _first_eviction(store, before, until)
    for resource in _read_resources(store):
        if resource == PODS.qualified:
            continue
        known = {record.key for record in store.records_at(resource, before) or ()}
        # No decision counts on a node that comes after it.
        last = decided if resource == NODES.qualified else until
        for change in _changes(store, resource, before, last):
            if change.type == "ADDED" and change.record.key not in known:
                yield change.record.data


def _node_names(store: Store, version: int) -> set[str]:
    return {name_of(each.decode()) for each in store.records_at(NODES.qualified, version) or ()}


def _first_eviction(store: Store, before: int, until: int) -> int:
    """Return the version at which a scheduler first evicts a pod; the last version for none."""
    for change in _changes(store, PODS.qualified, before, until):
        now = preempted(change.record.decode())
        if now and not (change.previous and preempted(change.previous.decode())):
            return change.version
    return until


def preempted(pod: Obj) -> bool:
    """Return whether a scheduler said of a pod that it evicts it."""
    return any(
        each["type"] == "DisruptionTarget" and each.get("reason") == "PreemptionByScheduler"
        for each in pod.get("status", {}).get("conditions") or ()
    )


def _comers(store: Store, wave: Wave, before: int, until: int) -> list[Obj]:
    """Return the pods of a wave as they were before a scheduler chose nodes for them.

    The status names the claims that a controller has made for a pod, so the latest version counts.
    """
    comers: dict[str, Obj] = {}
    for change in _changes(store, PODS.qualified, before, until):
        pod = change.record.decode()
        meta = pod["metadata"]
        if meta.get("labels", {}).get(WAVE_LABEL) != str(wave.number) or node_of(pod):
            continue
        if change.type != "DELETED" and not meta.get("deletionTimestamp"):
            pod.get("status", {}).pop("nominatedNodeName", None)
            comers[meta["uid"]] = pod
    return list(comers.values())


def _changes(store: Store, resource: str, before: int, until: int) -> Iterator[Change]:
    log = store.shelf(resource).log
    for change in log.since(before, len(log)) or ():
        if change.version <= until:
            yield change


def _quiet_pods(pods: Iterable[Obj], nodes: Collection[str]) -> Iterator[bytes]:
    """Yield pods that stop at once, of which those of the lowest priority have no owner.

    A pod that is being deleted stays, and counts in quotas, if its node is gone.
    """
    staying = [
        pod
        for pod in pods
        if not pod["metadata"].get("deletionTimestamp") or node_of(pod) not in nodes
    ]
    lowest = min(map(priority_of, staying), default=0)
    for pod in staying:
        pod["metadata"].pop("deletionTimestamp", None)
        if priority_of(pod) == lowest:
            pod["metadata"].pop("ownerReferences", None)
        pod["spec"]["terminationGracePeriodSeconds"] = 0
        pod["metadata"].get("annotations", {}).pop(STOP_SECONDS, None)
        yield encode(pod)
