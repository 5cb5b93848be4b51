"""Namespaces: objects need an existing namespace, and are deleted together with it.

Upstream, a controller empties a terminating namespace. Here the server does, at once and in order,
so namespaces also go in a cluster without controllers. Pods on nodes end by their grace period
first. The namespace waits for them, and its conditions give the reason. While webhooks or policies
review deletes, the server makes the calls of that controller (`content_calls`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain, islice
from typing import NamedTuple

from moorage.api.resources import ResourceType
from moorage.base.clock import NS_PER_SECOND, rfc3339
from moorage.kinds.kind import Obj
from moorage.kinds.status import forbidden, not_found
from moorage_sandbox.apiserver.admission.content_calls import ContentCalls
from moorage_sandbox.apiserver.catalog import Served
from moorage_sandbox.apiserver.verbs.deleting import NAMESPACES, PODS, DeleteOptions, Deleter
from moorage_sandbox.apiserver.verbs.metadata import stamp_new
from moorage_sandbox.apiserver.world import World
from moorage_sandbox.storage.record import Record

# The propagation policy of upstream's controller, so that jobs do not wait for a garbage collector.
_BACKGROUND = DeleteOptions(propagation_policy="Background")

# A few remaining objects are reported on every change; more, once a second (both a guess).
_LITTLE = 10
_TOLD_EVERY_NS = NS_PER_SECOND

# Seconds until a refused deletion is tried again; they double each time (kubernetes v1.36
# pkg/controller/namespace/namespace_controller.go, nsControllerRateLimiter).
_RETRY_SECONDS, _RETRY_SECONDS_MAX = 5.0, 60.0

FINALIZER = "kubernetes"
"""The finalizer of a namespace until its contents are deleted."""
INITIAL = ("default", "kube-node-lease", "kube-public", "kube-system")


class _Failure(NamedTuple):
    """Why objects of a namespace could not be deleted, and when that is tried again."""

    messages: list[str]
    seconds: float
    retry: asyncio.TimerHandle


class Namespaces:
    """Protects and empties namespaces.

    Parameters
    ----------
    world
        Holds the namespaces.
    deleter
        Deletes their contents; reports deletions to this object.

    Attributes
    ----------
    calls
        Deletes contents where deletes are reviewed; None while the server is put together.
    """

    def __init__(self, world: World, deleter: Deleter) -> None:
        self._world = world
        self._deleter = deleter
        self._served = world.catalog.by_plural(NAMESPACES)
        self._pods = world.catalog.by_plural(PODS)
        # Namespaces whose objects are being deleted one after another right now.
        self._emptying: set[str] = set()
        # Terminating namespaces without pods, whose other objects are deleted.
        self._without_pods: set[str] = set()
        # Namespace -> time of the last write of its conditions.
        self._told_ns: dict[str, int] = {}
        self._failures: dict[str, _Failure] = {}
        self.calls: ContentCalls | None = None
        deleter.on_gone = self.remove_if_empty
        deleter.on_terminating = self._empty

    def check_open(self, namespace: str, resource: ResourceType, name: str) -> None:
        """Refuse to create in a namespace that does not exist or is terminating.

        Raises
        ------
        StatusError
            404 or 403.
        """
        found = self._world.lookup(NAMESPACES, None, namespace)
        if found is None:
            raise not_found(self._served.kind.resource, namespace)
        if found["metadata"].get("deletionTimestamp"):
            text = f"namespace {namespace} is being terminated"
            cause = {
                "reason": "NamespaceTerminating",
                "message": text,
                "field": "metadata.namespace",
            }
            raise forbidden(
                resource,
                name,
                f"unable to create new content in namespace {namespace} because it is being "
                "terminated",
                causes=[cause],
            )

    def resume(self) -> None:
        """Go on emptying terminating namespaces; called after a store has been restored."""
        for record in list(self._world.store.shelf(NAMESPACES).records()):
            if record.decode()["metadata"].get("deletionTimestamp"):
                self._empty(record.name)

    def _empty(self, namespace: str) -> None:
        """Delete the contents of a namespace, then the namespace when nothing is left.

        Pods go first, and the other objects after the last pod. A pod may use them until it ends
        (OrderedNamespaceDeletion of kubernetes v1.36, pkg/controller/namespace/deletion).
        """
        if namespace not in self._emptying:
            self._emptying.add(namespace)
            if self.calls is not None and self.calls.are_reviewed():
                self.calls.spawn(partial(self._delete_by_calls, self.calls, namespace))
            else:
                self._world.later(partial(self._delete_contents, namespace))

    def _delete_contents(self, namespace: str) -> None:
        world = self._world
        try:
            self._delete_all(self._pods, namespace)
            if not world.one_by_one(partial(self._any, self._pods, namespace)):
                self._without_pods.add(namespace)
                for served in self._namespaced():
                    self._delete_all(served, namespace)
        finally:
            self._emptying.discard(namespace)
        world.one_by_one(lambda: world.run_in_one_step(partial(self.remove_if_empty, namespace)))

    async def _delete_by_calls(self, calls: ContentCalls, namespace: str) -> None:
        """Do as `_delete_contents`, by calls; try again later where a call fails."""
        try:
            failures = await calls.delete_objects(self._pods, namespace)
            if not failures and not self._any(self._pods, namespace):
                self._without_pods.add(namespace)
                for served in self._namespaced():
                    failures += await calls.delete_objects(served, namespace)
        finally:
            self._emptying.discard(namespace)
        last = self._failures.pop(namespace, None)
        if last is not None:
            last.retry.cancel()
        if failures:
            seconds = _RETRY_SECONDS if last is None else min(2 * last.seconds, _RETRY_SECONDS_MAX)
            retry = asyncio.get_running_loop().call_later(seconds, self._try_again, namespace)
            self._failures[namespace] = _Failure(failures, seconds, retry)
        self._world.run_in_one_step(partial(self.remove_if_empty, namespace))

    def _try_again(self, namespace: str) -> None:
        """Delete the contents of a namespace once more, if it still terminates."""
        stored = self._world.lookup(NAMESPACES, None, namespace)
        if stored and stored["metadata"].get("deletionTimestamp"):
            self._empty(namespace)

    def _delete_all(self, served: Served, namespace: str) -> None:
        records = self._world.store.shelf(served.shelf).listed(namespace)
        self._deleter.delete_all(served, records, _BACKGROUND)

    def remove_if_empty(self, namespace: str) -> None:
        """Remove a terminating namespace if it has no contents and no finalizers."""
        stored = self._world.lookup(NAMESPACES, None, namespace)
        if stored is None or not stored["metadata"].get("deletionTimestamp"):
            return
        if namespace in self._emptying:
            return
        if self._any(self._pods, namespace):
            self._write_conditions(namespace, [self._pods])
            return
        if namespace not in self._without_pods:
            # The last pod has just gone.
            self._empty(namespace)
            return
        left = [each for each in self._namespaced() if self._any(each, namespace)]
        if left:
            self._write_conditions(namespace, left)
            return
        waits = [each for each in stored["spec"].get("finalizers") or () if each != FINALIZER]
        if waits or stored["metadata"].get("finalizers"):
            self._finalized(namespace, waits)
            return
        self._told_ns.pop(namespace, None)
        if (failure := self._failures.pop(namespace, None)) is not None:
            failure.retry.cancel()
        self._without_pods.discard(namespace)
        self._world.remove(self._served, ("", namespace))
        if namespace in INITIAL:
            self._make_again(namespace)

    def _make_again(self, namespace: str) -> None:
        """Make a namespace of a new cluster again, as upstream's system namespaces controller."""
        obj: Obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        self._served.rules.defaults(obj)
        stamp_new(obj, self._world.clock, self._world.rng)
        self._served.rules.prepare_create(obj, self._world)
        self._world.store_form(self._served, obj)

    def _finalized(self, namespace: str, waits: list[str]) -> None:
        """Remove the server's own finalizer from an empty namespace with other finalizers."""
        obj = self._stored(namespace)
        if obj["spec"].get("finalizers") != waits:
            obj["spec"]["finalizers"] = waits
            self._set_conditions(obj, {})
            self._world.store_form(self._served, obj)

    def _any(self, served: Served, namespace: str) -> bool:
        return next(self._world.store.shelf(served.shelf).records(namespace), None) is not None

    def _write_conditions(self, namespace: str, left: list[Served]) -> None:
        """Write into the conditions which objects a namespace waits for."""
        shelves = [self._world.store.shelf(each.shelf) for each in left]
        found = chain.from_iterable(shelf.records(namespace) for shelf in shelves)
        much = next(islice(found, _LITTLE, None), None) is not None
        now_ns = self._world.clock.monotonic_ns()
        recent = now_ns - self._told_ns.get(namespace, now_ns - _TOLD_EVERY_NS) < _TOLD_EVERY_NS
        if recent and much:
            return
        self._told_ns[namespace] = now_ns
        records = {
            each.kind.resource: list(shelf.records(namespace))
            for each, shelf in zip(left, shelves, strict=True)
        }
        obj = self._stored(namespace)
        if self._set_conditions(obj, records):
            self._world.store_form(self._served, obj)

    def _set_conditions(self, obj: Obj, records: dict[ResourceType, list[Record]]) -> bool:
        """Set the conditions for the remaining objects, in place; False for no change."""
        status = obj.setdefault("status", {})
        before = status.get("conditions") or []
        failure = self._failures.get(obj["metadata"]["name"])
        failures = [] if failure is None else failure.messages
        now = rfc3339(self._world.clock.now_ns())
        status["conditions"] = _conditions(records, failures, before, now)
        return bool(status["conditions"] != before)

    def _stored(self, namespace: str) -> Obj:
        """Return a copy of a namespace, which may be changed."""
        record = self._world.store.shelf(NAMESPACES).get(("", namespace))
        assert record is not None, "the caller has just looked at the namespace"
        return record.decode()

    def _namespaced(self) -> list[Served]:
        return [each for each in self._world.catalog.shelves() if each.kind.resource.namespaced]


def _conditions(
    records: dict[ResourceType, list[Record]],
    failures: Sequence[str],
    before: Iterable[Obj],
    now: str,
) -> list[Obj]:
    """Return the conditions for the remaining objects, as the namespace controller does.

    Notes
    -----
    kubernetes v1.36 pkg/controller/namespace/deletion/status_condition_utils.go.
    """
    resources = sorted(
        f"{each.plural}.{each.group} has {len(objects)} resource instances"
        for each, objects in records.items()
    )
    holders = Counter(
        finalizer
        for objects in records.values()
        for record in objects
        for finalizer in record.decode()["metadata"].get("finalizers") or ()
    )
    finalizers = sorted(f"{name} in {count} resource instances" for name, count in holders.items())
    conditions = [
        ("DeletionDiscoveryFailure", *_GOOD["DeletionDiscoveryFailure"]),
        ("DeletionGroupVersionParsingFailure", *_GOOD["DeletionGroupVersionParsingFailure"]),
        (
            "DeletionContentFailure",
            "True",
            "ContentDeletionFailed",
            f"Failed to delete all resource types, {len(failures)} remaining: "
            f"{', '.join(sorted(failures))}",
        )
        if failures
        else ("DeletionContentFailure", *_GOOD["DeletionContentFailure"]),
        (
            "ContentRemaining",
            "True",
            "SomeResourcesRemain",
            f"Some resources are remaining: {', '.join(resources)}",
        )
        if resources
        else ("ContentRemaining", *_GOOD["ContentRemaining"]),
        (
            "FinalizersRemaining",
            "True",
            "SomeFinalizersRemain",
            f"Some content in the namespace has finalizers remaining: {', '.join(finalizers)}",
        )
        if finalizers
        else ("FinalizersRemaining", *_GOOD["FinalizersRemaining"]),
    ]
    since = {(each["type"], each["status"]): each["lastTransitionTime"] for each in before}
    return [
        {
            "type": f"Namespace{kind}",
            "status": status,
            "lastTransitionTime": since.get((f"Namespace{kind}", status), now),
            "reason": reason,
            "message": message,
        }
        for kind, status, reason, message in conditions
    ]


_GOOD = {
    "DeletionDiscoveryFailure": (
        "False",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    "DeletionGroupVersionParsingFailure": (
        "False",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "DeletionContentFailure": (
        "False",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "ContentRemaining": ("False", "ContentRemoved", "All content successfully removed"),
    "FinalizersRemaining": (
        "False",
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
}
