"""The page of the API server's kinds: kept, validated or alive."""

from __future__ import annotations

from moorage.kinds.served import ServedKind
from moorage_sandbox.apiserver.served_kinds import GROUPS, served_kinds

_HEADER = """# Kinds of the embedded API server

<!-- Written by `make docs` from moorage.kinds. Do not edit. -->

`moorage up` serves every resource of Kubernetes v1.36, in every version. Each object is checked
against the schema of its version (types, unknown fields), stored, listed, watched, patched and
applied. Tables show at least name and age.

- **kept**: nothing more happens. The object is there for the programs that read it.
- **validated**: the kind has defaults, rules and columns of its own.
- **alive**: a part of moorage acts on the objects.

"Rules" says how far the rules of a kind go:

- **as upstream**: every rule was compared with kube-apiserver's source, for new objects and for
  changes: fields, types of errors and messages.
- **as upstream for scheduling**: so were the rules of the fields that scheduling reads. Other
  fields, such as `securityContext` of a pod or the sources of a volume, have most of the rules.
- **some**: the rules that matter most. kube-apiserver may refuse an object that is accepted here.

"Stored as" names the version an object is stored in, where that is another one.

| Kind | API version | Here | Rules | Acted on by | Subresources | Stored as |
|---|---|---|---|---|---|---|
"""
_AS_UPSTREAM = frozenset(
    {
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "csistoragecapacities.storage.k8s.io",
        "deviceclasses.resource.k8s.io",
        "limitranges",
        "persistentvolumeclaims",
        "podgroups.scheduling.k8s.io",
        "priorityclasses.scheduling.k8s.io",
        "resourceclaims.resource.k8s.io",
        "resourceclaimtemplates.resource.k8s.io",
        "resourceslices.resource.k8s.io",
        "runtimeclasses.node.k8s.io",
        "storageclasses.storage.k8s.io",
        "volumeattributesclasses.storage.k8s.io",
        "workloads.scheduling.k8s.io",
    }
)
_FOR_SCHEDULING = frozenset(
    {
        "cronjobs.batch",
        "daemonsets.apps",
        "deployments.apps",
        "jobs.batch",
        "nodes",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "replicasets.apps",
        "replicationcontrollers",
        "statefulsets.apps",
        "volumeattachments.storage.k8s.io",
    }
)
_FOOTER = """
Refused with a reason: `attach`, `exec`, `portforward`, and `proxy` of pods, services and nodes,
which need a running container. Reviews (`authentication.k8s.io`, `authorization.k8s.io`) and
`bindings` are answered and never stored.
"""


def kinds_page() -> str:
    """Return the page: one row for each kind and version."""
    own = {kind.resource for group in GROUPS for kind in group}
    kinds = sorted(served_kinds(), key=lambda kind: (kind.resource.kind, kind.resource.api_version))
    return _HEADER + "".join(_row(kind, own=kind.resource in own) for kind in kinds) + _FOOTER


def _row(kind: ServedKind, *, own: bool) -> str:
    resource, translation = kind.resource, kind.translation
    stored = translation.stored.api_version if translation else ""
    state = (
        "alive" if kind.acted_on_by else "validated" if own else "as stored" if stored else "kept"
    )
    parts = ", ".join(f"`{name}`" for name in sorted(kind.subresources))
    return (
        f"| {resource.kind} | {resource.api_version} | {state} | {_rules(kind, own=own)} "
        f"| {kind.acted_on_by} | {parts} | {stored} |\n"
    )


def _rules(kind: ServedKind, *, own: bool) -> str:
    """Say how far the rules of a kind go; the rules of a stored version hold for all versions."""
    name = kind.resource.qualified
    if name in _AS_UPSTREAM:
        return "as upstream"
    if name in _FOR_SCHEDULING:
        return "as upstream for scheduling"
    return "some" if own or kind.translation else ""
