"""Whether a resource quota allows an object, in kube-apiserver's words; pure.

`moorage_sandbox.apiserver.admission.quota` counts the use that is passed in. Mirrors kubernetes
v1.36 apiserver pkg/admission/plugin/resourcequota and pkg/quota/v1/evaluator/core.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moorage.api.quantity import parse_quantity
from moorage.kinds.quotas.limit_range import spelled
from moorage.kinds.quotas.usage import matches_scopes, usage
from moorage.kinds.tree import Json, child, objects, text
from moorage.kinds.values.quantities import Amounts

# A quota that bounds one of these resources requires every container to state it.
_TO_BE_NAMED = ("cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory")


def quota_fault(
    quota: Json, used: Mapping[str, int], shelf: str, *, new: Json, old: Json | None
) -> str:
    """Return why a quota refuses an object, "" if it does not.

    Parameters
    ----------
    quota
        The quota.
    used
        Its use so far, nano units.
    shelf
        Resource of the object with its group, ``deployments.apps``.
    new, old
        The object, and the stored version that it replaces; None for a new object.
    """
    spec = child(quota, "spec")
    if not matches_scopes(spec, shelf, new):
        return ""
    if shelf == "pods" and old is None:
        missing = _unnamed(new, quota)
        if missing:
            return missing
    before: Amounts = {}
    if old is not None and matches_scopes(spec, shelf, old):
        before = usage(shelf, old)
    wanted = {name: nano - before.get(name, 0) for name, nano in usage(shelf, new).items()}
    return _excess(quota, used, wanted)


def _excess(quota: Json, used: Mapping[str, int], wanted: Amounts) -> str:
    hard = child(quota, "spec", "hard")
    exceeded = [
        name
        for name in sorted(hard)
        if wanted.get(name, 0) > 0 and used.get(name, 0) + wanted[name] > parse_quantity(hard[name])
    ]
    if not exceeded:
        return ""
    asked = ",".join(f"{n}={spelled(wanted[n], hard[n])}" for n in exceeded)
    taken = ",".join(f"{n}={spelled(used.get(n, 0), hard[n])}" for n in exceeded)
    bound = ",".join(f"{n}={hard[n]}" for n in exceeded)
    return (
        f"exceeded quota: {text(quota, 'metadata', 'name')}, requested: {asked}, "
        f"used: {taken}, limited: {bound}"
    )


def _unnamed(pod: Json, quota: Json) -> str:
    """Return the fault of a pod with a container that does not state a bounded resource.

    With resources of the pod as a whole no container has to state any.
    """
    if any(child(pod, "spec", "resources", part) for part in ("requests", "limits")):
        return ""
    bounded = [name for name in sorted(child(quota, "spec", "hard")) if name in _TO_BE_NAMED]
    missing: dict[str, set[str]] = {}
    for container in _all_containers(pod):
        for name in bounded:
            part = "limits" if name.startswith("limits.") else "requests"
            if name.rpartition(".")[2] not in child(container, "resources", part):
                missing.setdefault(name, set()).add(text(container, "name"))
    if not missing:
        return ""
    listed = "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in missing)
    return f"failed quota: {text(quota, 'metadata', 'name')}: must specify {listed}"


def _all_containers(pod: Json) -> Iterable[Json]:
    yield from objects(pod, "spec", "containers")
    yield from objects(pod, "spec", "initContainers")
