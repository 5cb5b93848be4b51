"""ResourceQuota at work: a namespace's use is counted, and an object above a quota is refused.

Place in the flow: `checks` asks before an object is stored, `world` reports every write in a
namespace with quotas. Upstream, a controller recounts now and then. Here the count follows every
write at once, so ``status.used`` is always exact. Mirrors kubernetes v1.36 apiserver
pkg/admission/plugin/resourcequota and pkg/quota/v1.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from functools import partial

from moorage.kinds.kind import Obj
from moorage.kinds.quotas.limit_range import spelled
from moorage.kinds.quotas.quota_rules import quota_fault
from moorage.kinds.quotas.usage import matches_scopes, usage
from moorage.kinds.status import forbidden
from moorage.kinds.tree import child, text
from moorage.kinds.values.quantities import Amounts
from moorage_sandbox.apiserver.catalog import Served
from moorage_sandbox.apiserver.world import World
from moorage_sandbox.storage.reads import noting
from moorage_sandbox.storage.record import Record

QUOTAS = "resourcequotas"


Contents = dict[str, list[Record]]
"""The objects of a namespace by shelf."""


class Quotas:
    """Counts the use of namespaces, and refuses objects that exceed their quotas.

    Parameters
    ----------
    world
        Holds quotas and all other objects.

    Attributes
    ----------
    used
        Namespace -> name of a quota -> use of each resource that it bounds, nano units.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._served = world.catalog.by_plural(QUOTAS)
        self.used: dict[str, dict[str, Amounts]] = {}
        world.on_write(QUOTAS, self._quota_written, apart=True)

    def load(self) -> None:
        """Count again for every stored quota; called after a store has been restored."""
        for namespace in self.used:
            self._world.on_write_in(namespace, None)
        self.used.clear()
        for record in list(self._world.store.shelf(QUOTAS).records()):
            self._quota_written(self._served, None, record)

    def check_quotas(self, served: Served, new: Obj, old: Obj | None) -> None:
        """Refuse an object that would take more than a quota leaves.

        Raises
        ------
        StatusError
            403.
        """
        namespace = text(new, "metadata", "namespace")
        resource, shelf = served.kind.resource, served.shelf
        for name in sorted(self.used.get(namespace, ())):
            quota = self._world.lookup(QUOTAS, namespace, name)
            assert quota is not None, "quotas counted for exist"
            why = quota_fault(quota, self.used[namespace][name], shelf, new=new, old=old)
            if why:
                raise forbidden(resource, text(new, "metadata", "name"), why)

    def _quota_written(self, served: Served, before: Record | None, after: Record | None) -> None:
        """Count for a quota that is new or has changed; stop for a deleted quota.

        Counting takes long in a large namespace, so other calls may write meanwhile.
        """
        world = self._world
        with noting(None):
            if after is None:
                assert before is not None, "something was there to be removed"
                world.run_in_one_step(partial(self._drop, before))
                return
            quota = after.decode()
            counted = self.used.get(after.namespace, {}).get(after.name)
            if counted is not None and set(counted) == set(child(quota, "spec", "hard")):
                world.run_in_one_step(partial(self._write_status, after.namespace, after.name))
                return
            contents = self._contents(after.namespace)
            total: Amounts = dict.fromkeys(child(quota, "spec", "hard"), 0)
            for shelf, records in contents.items():
                _count(total, quota, shelf, records, 1)
            world.run_in_one_step(partial(self._begin, after, total, contents))

    def _contents(self, namespace: str) -> Contents:
        """Return the objects of a namespace, each shelf as it is at one moment."""
        return {
            served.shelf: self._world.store.shelf(served.shelf).listed(namespace)
            for served in self._world.catalog.shelves()
            if served.kind.resource.namespaced
        }

    def _begin(self, record: Record, total: Amounts, contents: Contents) -> None:
        """Use a count from now on, with the writes since the objects in it were read."""
        namespace, name = record.namespace, record.name
        if self._world.store.shelf(QUOTAS).get(record.key) is None:
            return
        quota = record.decode()
        for shelf, now in self._contents(namespace).items():
            before = contents.get(shelf, [])
            if len(now) != len(before) or not all(map(operator.is_, now, before)):
                old, new = ({id(each): each for each in found} for found in (before, now))
                _count(total, quota, shelf, [old[key] for key in old if key not in new], -1)
                _count(total, quota, shelf, [new[key] for key in new if key not in old], 1)
        self.used.setdefault(namespace, {})[name] = total
        self._world.on_write_in(namespace, self._written)
        self._write_status(namespace, name)

    def _drop(self, gone: Record) -> None:
        left = self.used.get(gone.namespace, {})
        left.pop(gone.name, None)
        if not left:
            self.used.pop(gone.namespace, None)
            self._world.on_write_in(gone.namespace, None)

    def _written(self, served: Served, before: Record | None, after: Record | None) -> None:
        """Follow one write in a namespace with quotas."""
        namespace = (after or before).namespace  # type: ignore[union-attr]
        changes = [
            (obj := record.decode(), usage(served.shelf, obj), sign)
            for record, sign in ((before, -1), (after, 1))
            if record is not None
        ]
        bounded = {name for _, use, _ in changes for name in use}
        for name, used in sorted(self.used.get(namespace, {}).items()):
            # Most quotas are about other resources, and decoding each takes 10 microseconds.
            if bounded.isdisjoint(used):
                continue
            quota = self._world.lookup(QUOTAS, namespace, name)
            if quota is None:
                continue
            spec, amounts = child(quota, "spec"), dict(used)
            for obj, use, sign in changes:
                if matches_scopes(spec, served.shelf, obj):
                    _add(amounts, use, sign)
            if amounts != used:
                self.used[namespace][name] = amounts
                self._write_status(namespace, name)

    def _write_status(self, namespace: str, name: str) -> None:
        """Write the use into a quota's status."""
        record = self._world.store.shelf(QUOTAS).get((namespace, name))
        assert record is not None, "quotas counted for exist"
        quota = record.decode()
        hard, used = child(quota, "spec", "hard"), self.used[namespace][name]
        status = {
            "hard": dict(hard),
            "used": {each: spelled(used[each], hard[each]) for each in sorted(hard)},
        }
        if quota.get("status") != status:
            quota["status"] = status
            self._world.store_form(self._served, quota)


def _count(total: Amounts, quota: Obj, shelf: str, records: Iterable[Record], sign: int) -> None:
    """Add the use of objects to a total, or take it away."""
    spec = child(quota, "spec")
    for record in records:
        obj = record.decode()
        if matches_scopes(spec, shelf, obj):
            _add(total, usage(shelf, obj), sign)


def _add(total: Amounts, more: Amounts, sign: int) -> None:
    for name in total.keys() & more.keys():
        total[name] += sign * more[name]
