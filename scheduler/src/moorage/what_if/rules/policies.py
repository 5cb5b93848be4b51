"""Admission policies in a model: new objects are changed and denied as a server would do it.

Place in the flow: `admission` asks here for each new object. Without the CEL runtime, or where the
parameters of a policy are not among the objects, a policy is not evaluated; `not_evaluated` names
it. The rules are those of the embedded API server (`moorage.policies`). Only creations are looked
at: what-if changes objects in no other way that policies see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, Protocol

from moorage.api.codec import decode_untyped
from moorage.cel.runtime import is_installed
from moorage.kinds.kind import Obj
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, child, text
from moorage.kinds.tree import objects as objects_of
from moorage.kinds.users import User
from moorage.policies.bound import GROUP, BoundPolicies, BoundPolicy, Chosen
from moorage.policies.denying import denial, judgement_of
from moorage.policies.expressions import missing, read_policy
from moorage.policies.matching import Write
from moorage.policies.mutating import mutated_write
from moorage.policies.mutating_chain import Invocations, MutatingChain
from moorage.virtual.kinds import versions_of
from moorage.virtual.objects import ClusterObjects

_PAIRS: Final = (
    ("MutatingAdmissionPolicy", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
    (
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
    ),
)
_ADMIN: Final = User("kubernetes-admin", ("system:masters", "system:authenticated"))
_ACCOUNTS: Final[Mapping[str, str]] = {
    "DaemonSet": "daemon-set-controller",
    "Job": "job-controller",
    "ReplicaSet": "replicaset-controller",
    "ReplicationController": "replication-controller",
    "StatefulSet": "statefulset-controller",
}
"""The service account that creates the pods of an owner, by the owner's kind."""


class Lookup(Protocol):
    """Finds objects by their resource."""

    def lookup(self, plural: str, namespace: str | None, name: str) -> Obj | None:
        """Return an object, None when there is none."""
        ...

    def stored_objects(self, plural: str, namespace: str | None = None) -> Iterable[Obj]:
        """Return all objects of a resource, by namespace and name."""
        ...


class Policies:
    """The admission policies of a model.

    Parameters
    ----------
    objects
        The objects of the model.
    lookup
        Finds policies and bindings in them.
    """

    def __init__(self, objects: ClusterObjects, lookup: Lookup) -> None:
        self._objects = objects
        source = _PolicyObjects(lookup)
        self._source = source
        self._mutating = _Bound(objects, source, *_PAIRS[0][1:])
        self._validating = _Bound(objects, source, *_PAIRS[1][1:])

    @property
    def exist(self) -> bool:
        """Whether any policy has to be looked at."""
        found = self._objects.manifests
        return is_installed() and any(found.get((GROUP, f"{kind}Binding")) for kind, *_ in _PAIRS)

    def mutated(self, kind: ServedKind, obj: Obj, admit: Callable[[Obj], None]) -> Obj:
        """Return a new object as admission changes it.

        Parameters
        ----------
        kind
            Kind of the object.
        obj
            The object, which may be changed.
        admit
            Changes an object as Kubernetes' own admission plugins do, in place.

        Raises
        ------
        moorage.kinds.status.StatusError
            A policy whose failure policy is ``Fail`` has failed.
        """

        def step(write: Write, invocations: Invocations) -> Write:
            return mutated_write(self._mutating, write, kind, invocations, dry_run=False)

        asks = self.exist and kind.resource.group != GROUP
        chain = MutatingChain(
            admit=admit,
            client_steps=(step,) if asks else (),
            write_of=partial(self._write, kind),
            defaulted=lambda changed: changed,
        )
        return chain.mutated(obj)

    def check(self, kind: ServedKind, obj: Obj) -> None:
        """Refuse a new object that a validating policy denies.

        Raises
        ------
        moorage.kinds.status.StatusError
            The first denial.
        """
        if not self.exist or kind.resource.group == GROUP:
            return
        write = self._write(kind, obj)
        for bound in self._validating.matching_policies(write):
            if "Deny" not in bound.actions:
                continue
            for failed in judgement_of(self._validating, bound, write, dry_run=False).failures:
                raise denial(write, bound, failed)

    def _write(self, kind: ServedKind, obj: Obj) -> Write:
        self._source.caller = _creator(obj)
        return Write(
            operation="CREATE",
            resource=kind.resource,
            versions=versions_of(kind.resource),
            subresource="",
            new=obj,
            old=None,
            namespace=self._namespace(text(obj, "metadata", "namespace")),
        )

    def _namespace(self, name: str) -> Obj | None:
        """Return a namespace; one that is known by its name only has the label of its name."""
        if not name:
            return None
        labels = {"kubernetes.io/metadata.name": name}
        namespace_object = self._objects.manifest("", "Namespace", ("", name))
        if namespace_object is None:
            watched = self._objects.lister("namespaces").get(("", name))
            labels |= {} if watched is None else dict(watched.metadata.labels)
            return {"metadata": {"name": name, "labels": labels}}
        namespace_object["metadata"]["labels"] = labels | (
            namespace_object["metadata"].get("labels") or {}
        )
        return namespace_object


class _PolicyObjects:
    """The objects that a write meets, and the user who writes."""

    def __init__(self, lookup: Lookup) -> None:
        self.caller = _ADMIN
        self.lookup = lookup.lookup
        self.stored_objects = lookup.stored_objects


class _Bound(BoundPolicies):
    """The policies of one kind that can be evaluated here."""

    def __init__(
        self, cluster: ClusterObjects, source: _PolicyObjects, policies: str, bindings: str
    ) -> None:
        super().__init__(source, policies, bindings)
        self._cluster = cluster

    def matching_policies(self, write: Write) -> Iterator[BoundPolicy]:
        """Yield the policies that are about a write, and whose parameters are known."""
        for bound in super().matching_policies(write):
            policy = self._objects.lookup(self._policies, None, bound.name) or {}
            if not _unknown_parameters(self._cluster, policy, bound.binding):
                yield bound

    def params_of(self, kind: Json, namespace: str, chosen: Chosen) -> list[Obj] | None:
        """Return the chosen objects of a kind of parameters; a kind without namespaces has none."""
        known = self._cluster.manifests.get(_kind_of(kind), {})
        params = [decode_untyped(known[key]) for key in sorted(known) if key[0] in ("", namespace)]
        return [
            each
            for each in params
            if chosen(each["metadata"]["name"], each["metadata"].get("labels") or {})
        ]


def not_evaluated(objects: ClusterObjects) -> list[str]:
    """Return a sentence for each bound policy of a model that is not looked at, and why."""
    sentences = []
    for name, *_ in _PAIRS:
        policies = objects.manifests.get((GROUP, name), {})
        for _, text_of in sorted(objects.manifests.get((GROUP, f"{name}Binding"), {}).items()):
            binding = decode_untyped(text_of)
            policy = policies.get(("", text(binding, "spec", "policyName")))
            why = "" if policy is None else _why_not(objects, decode_untyped(policy), binding)
            if why:
                policy_name = text(binding, "spec", "policyName")
                sentences.append(f"{name} {policy_name} is not looked at: {why}")
    return list(dict.fromkeys(sentences))


def _why_not(objects: ClusterObjects, policy: Obj, binding: Obj) -> str:
    if not is_installed():
        return "CEL is not installed; pip install 'moorage[dra]' has it"
    if _unknown_parameters(objects, policy, binding):
        return f"objects of the kind {text(policy, 'spec', 'paramKind', 'kind')} were not read"
    absent = missing(read_policy(child(policy, "spec")), knows_rights=False)
    return "; ".join(absent)


def _unknown_parameters(objects: ClusterObjects, policy: Obj, binding: Obj) -> bool:
    kind = child(policy, "spec", "paramKind")
    asks = bool(kind) and bool(child(binding, "spec", "paramRef"))
    return asks and _kind_of(kind) not in objects.manifests


def _kind_of(kind: Json) -> tuple[str, str]:
    return text(kind, "apiVersion").rpartition("/")[0], text(kind, "kind")


def _creator(obj: Obj) -> User:
    """Return who creates an object: the controller of its owner, or an administrator."""
    owners = objects_of(obj, "metadata", "ownerReferences")
    kinds = [text(each, "kind") for each in owners if each.get("controller")]
    account = _ACCOUNTS.get(kinds[0]) if kinds else None
    if account is None:
        return _ADMIN
    groups = ("system:serviceaccounts", "system:serviceaccounts:kube-system")
    name = f"system:serviceaccount:kube-system:{account}"
    return User(name, (*groups, "system:authenticated"))
