"""The admission webhooks of a model, which are not called: their configurations are named.

A webhook may change or deny what a change creates, and only its program knows how.
"""

from __future__ import annotations

from typing import Final

from moorage.api import resources
from moorage.api.codec import decode_untyped
from moorage.kinds.kind import Obj
from moorage.kinds.tree import objects as objects_of
from moorage.policies.matching import covers_creation
from moorage.virtual.objects import ClusterObjects

WEBHOOK_KINDS: Final = (
    resources.MUTATING_WEBHOOK_CONFIGURATIONS,
    resources.VALIDATING_WEBHOOK_CONFIGURATIONS,
)
_CREATED: Final = (
    ("", "pods"),
    ("", "pods/eviction"),
    ("", "persistentvolumeclaims"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("batch", "jobs"),
    ("resource.k8s.io", "resourceclaims"),
)
"""The resources that changes create, with their API group and subresource."""


def not_called(objects: ClusterObjects) -> list[str]:
    """Return a sentence for each configuration with a webhook about what changes create."""
    return [
        f"{resource.kind} {name} is not looked at: webhooks are not called"
        for resource in WEBHOOK_KINDS
        for (_, name), text in sorted(
            objects.manifests.get((resource.group, resource.kind), {}).items()
        )
        if _is_about_changes(decode_untyped(text))
    ]


def _is_about_changes(configuration: Obj) -> bool:
    return any(
        covers_creation(rule, group, called)
        for webhook in objects_of(configuration, "webhooks")
        for rule in objects_of(webhook, "rules")
        for group, called in _CREATED
    )
