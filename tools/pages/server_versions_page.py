"""The page of API server versions: what each serves of the kinds that the scheduler watches."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.config.gate_table import GATES, V1_36, V1_37, Gate
from moorage.service.intake.kinds import (
    DEVICE_TAINT_RULE,
    POD_GROUP,
    SERVER_VERSIONS,
    WATCHED,
    WatchedKind,
)

_HEADER = """# Versions of the API server

<!-- Written by `make docs` from moorage.service.intake.kinds. Do not edit. -->

moorage decides as kube-scheduler v1.36, or v1.37 with `--emulated-version 1.37`. It works with API
servers of the versions in this table, whichever version it emulates.
A kind that the server does not serve in the listed API version is taken for empty. The scheduler
says so once, asks again every minute, and uses the kind as soon as the server serves it. It
writes Events as `events.k8s.io/v1`, which all these versions serve.

| API server | Not served by default | Consequence |
|---|---|---|
"""
_FOOTER = """
The versions are those in which Kubernetes serves the kind in this API version; earlier alpha and
beta versions of it are not used. The exception is PodGroup: alpha in 1.36 (`v1alpha2`), beta and
off by default in 1.37 (`v1beta1`, and alpha `v1alpha3`). The API server serves it only with its own
feature gate, and moorage looks for it only with the gate GenericWorkload. moorage uses the newest
version that the server serves, and asks again with each list and each new watch. Of 1.37's groups
`preemptionPolicy` has no effect. With the gate CompositePodGroup, which needs the gate
TopologyAwareWorkloadScheduling, composite groups are scheduled
([their rules](pod-groups.md#composite-groups)). Without it a PodGroup with
`parentCompositePodGroupName` is refused: no pod of it is placed, and its condition, an Event and
its pods name the composite group. With `--emulated-version 1.37` groups are placed and preempt as
in 1.37, and their condition is `PodGroupInitiallyScheduled`.

DeviceTaintRule is stable in 1.37. 1.36 has it as `v1beta2`, off by default, and moorage reads that
version where `v1` is not served. Both are read only with the gate DRADeviceTaintRules, which is on
in 1.37 and off in 1.36. Earlier versions have other fields and are not read.

The server of `moorage up` is one of 1.36. With `--emulated-version 1.37` it serves DeviceTaintRule
in `v1` as well, and PodGroup and Workload in `v1beta1` and `v1alpha3` in the place of `v1alpha2`.
It keeps them in the form of 1.36, so that a data directory may change between the versions. It
serves CompositePodGroup (`v1alpha3`, in JSON alone), as a server with the gate of that name does.
It refuses the composite templates of a Workload, and `preemptionPolicy`, as the gate of this field
is off in 1.37.

Tests compare the table with what each version serves: groups, versions, resources and verbs. They
also run every part of the scheduler's work against a server that answers 404 to everything else.
What a version serves is read from the OpenAPI description of its release, as the official Python
client of that version has it (PyPI `kubernetes` 28.1.0 to 37.0.2). No server of each version was
run. That stable versions are on by default, and alpha and beta versions off, is Kubernetes' rule.

1.32 and 1.33 have devices as `resource.k8s.io/v1beta1`, and 1.33 as `v1beta2`. Both are off by
default, and moorage does not use them where they are switched on.

## Which versions may be combined

- **API server**: any version of the table. Kubernetes itself does not allow kube-scheduler to be
  newer than the API server; moorage may be, since it asks what is served, and all kinds but
  PodGroup are stable. While API servers of two versions run side by side, the older one counts.
- **kube-scheduler next to it**: any version, with other profiles and another Lease.
- **Replicas of moorage**: two releases may share a Lease during an upgrade, since only the leader
  writes. They decide as one release does as soon as the newer one leads.
- **kubelet**: any version that the API server allows. A node that does not declare a feature
  (`status.declaredFeatures`) gets no pod that needs it, where the gate NodeDeclaredFeatures is
  on.
- **Configuration**: `kubescheduler.config.k8s.io/v1`. Files of earlier versions are
  [renewed](../how-to/change-the-configuration.md#from-an-older-version-of-kubernetes).
"""
_DECISIONS = f"""
## What is decided otherwise

Decisions follow the emulated version (`--emulated-version`, {V1_36} by default), whichever version
the API server has. With {V1_36} and with every older server they are those of kube-scheduler
{V1_36}; what an older server does not serve is in the table above. {V1_37} decides in these cases
otherwise:

| Plugin | Decision of {V1_37} | Gate |
|---|---|---|
| DefaultPreemption | A PodDisruptionBudget with an empty selector protects every pod of its \
namespace, a budget may protect a pod without labels, and a victim uses up no further budget after \
the first that it breaks. | - |
"""
_OTHERWISE = f"""
## Gates that differ

These gates have another default in {V1_37} than in {V1_36}, or exist in one of both only.
[The table of gates](feature-gates.md) has all of them.

| Gate | {V1_36} | {V1_37} | What it changes | With `--emulated-version {V1_37}` |
|---|---|---|---|---|
"""
_CONSEQUENCES = {
    "resource_claims": "Pods with resource claims stay pending.",
    "device_taint_rules": "DeviceTaintRules taint no device.",
    "pod_groups": "Groups of Kubernetes are not found; groups by labels and Coscheduling work.",
}


def server_versions_page() -> str:
    """Return the page: one row for each version of the API server."""
    table = "".join(map(_row, SERVER_VERSIONS))
    decisions = "".join(_decisions())
    differences = "".join(_differences())
    return f"{_HEADER}{table}{_FOOTER}{_DECISIONS}{decisions}{_OTHERWISE}{differences}"


def _decisions() -> Iterator[str]:
    """Yield a row for each decision that differs between the two versions."""
    for gate in GATES:
        if gate.decision:
            yield f"| {gate.plugin} | {gate.decision} | `{gate.merged_into or gate.name}` |\n"


def _differences() -> Iterator[str]:
    """Yield a row for each gate that differs between the two versions."""
    for gate in GATES:
        before, now = (_default(gate, version) for version in (V1_36, V1_37))
        if before != now:
            yield f"| `{gate.name}` | {before} | {now} | {gate.effect} | {_built(gate)} |\n"


def _default(gate: Gate, version: str) -> str:
    state = gate.states.get(version)
    if state is None:
        return "-"
    return "on" if state.default else "off"


def _built(gate: Gate) -> str:
    state = gate.states.get(V1_37)
    if state is None:
        return f"a part of `{gate.merged_into}`"
    return "as kube-scheduler" if len(gate.built) > 1 else "`true` is refused: not implemented"


def _row(version: str) -> str:
    known = (*WATCHED, DEVICE_TAINT_RULE, POD_GROUP)
    lacking = [kind for kind in known if not kind.served_by(version)]
    told = [_CONSEQUENCES[kind.lister] for kind in lacking if kind.lister in _CONSEQUENCES]
    names = ", ".join(map(_named, lacking)) or "-"
    return f"| {version} | {names} | {' '.join(told) or 'Everything works.'} |\n"


def _named(kind: WatchedKind) -> str:
    return f"{kind.resource.kind} (`{kind.resource.api_version}`)"
