"""The admission policy that gives new pods to another scheduler.

A MutatingAdmissionPolicy (stable since Kubernetes 1.36) sets ``spec.schedulerName`` while the API
server creates a pod. No program has to run for it, and deleting it is the way back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from moorage.api.codec import encode
from moorage.api.coscheduling import GROUP_LABEL, NAME_LABEL, OLD_GROUP_LABEL

_GROUP: Final = "admissionregistration.k8s.io"
_SYSTEM: Final = "kube-system"
_DRAWS: Final = 16**4
"""The first four digits of an owner's uid are its draw."""


class Migration(msgspec.Struct, frozen=True, kw_only=True):
    """Which pods change their scheduler.

    Parameters
    ----------
    scheduler
        The ``schedulerName`` that they get.
    before
        The ``schedulerName`` that they had.
    namespaces
        The namespaces whose pods change; empty for all but kube-system.
    share
        Percent of the owners whose pods change, 1 to 100.
    name
        The name of the policy and of its binding.
    api_version
        A version of admissionregistration.k8s.io.
    """

    scheduler: str
    before: str = "default-scheduler"
    namespaces: Sequence[str] = ()
    share: int = 100
    name: str = "moorage-migrate"
    api_version: str = "v1"


def policy_objects(migration: Migration) -> list[dict[str, Any]]:
    """Return the policy and its binding.

    A pod that is about to be created has no uid yet, and mostly no name. So a share is drawn by the
    uid of the pod's controller: all pods of a ReplicaSet or Job go the same way, and stay there.
    Pods of a group may have different controllers, and pods without a controller have nothing to
    draw by: they change only where all pods do.

    If the policy cannot be evaluated, the pod keeps its scheduler.
    """
    version = f"{_GROUP}/{migration.api_version}"
    policy = {
        "apiVersion": version,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": migration.name},
        "spec": {
            "failurePolicy": "Ignore",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "namespaceSelector": {"matchExpressions": [_namespaces(migration.namespaces)]},
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ],
            },
            "matchConditions": [
                {"name": name, "expression": expression}
                for name, expression in _conditions(migration).items()
            ],
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {
                        "expression": "Object{spec: Object.spec{schedulerName: "
                        f"{_text(migration.scheduler)}}}}}"
                    },
                }
            ],
        },
    }
    binding = {
        "apiVersion": version,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": migration.name},
        "spec": {"policyName": migration.name},
    }
    return [policy, binding]


def _namespaces(names: Sequence[str]) -> dict[str, Any]:
    wanted = {"operator": "In", "values": list(names)}
    others = {"operator": "NotIn", "values": [_SYSTEM]}
    return {"key": "kubernetes.io/metadata.name", **(wanted if names else others)}


def _conditions(migration: Migration) -> dict[str, str]:
    """Return the conditions, in CEL, that a pod has to meet, by name."""
    conditions = {
        "scheduler": "has(object.spec.schedulerName) && "
        f"object.spec.schedulerName == {_text(migration.before)}",
        "no-node": "!has(object.spec.nodeName) || object.spec.nodeName == ''",
    }
    if migration.share < 100:
        labels = [_text(each) for each in (GROUP_LABEL, OLD_GROUP_LABEL, NAME_LABEL)]
        limit = round(migration.share * _DRAWS / 100)
        conditions["no-group"] = (
            "!has(object.spec.schedulingGroup) && (!has(object.metadata.labels) || "
            f"![{', '.join(labels)}].exists(label, label in object.metadata.labels))"
        )
        conditions["share"] = (
            "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(owner, "
            f"has(owner.controller) && owner.controller && owner.uid < '{limit:04x}')"
        )
    return conditions


def _text(value: str) -> str:
    """Return a text of CEL; one of JSON is one of CEL as well."""
    return encode(value).decode()
