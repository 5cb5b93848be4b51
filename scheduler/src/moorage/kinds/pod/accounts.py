"""The service account of a new pod.

`admission` calls `admit_account`. Mirrors kubernetes v1.36 plugin/pkg/admission/serviceaccount with
two differences (decision 61): no volume with the account's token is added, and a pod of the account
``default`` does not wait until a controller has made the account.
"""

from __future__ import annotations

from moorage.api.pod import MIRROR
from moorage.api.resources import ResourceType
from moorage.kinds import status
from moorage.kinds.cells import name_of
from moorage.kinds.kind import Context
from moorage.kinds.tree import Json, child, objects, text

DEFAULT = "default"
"""The account of a pod that names none; every namespace has it."""


def admit_account(pod: Json, ctx: Context, resource: ResourceType) -> None:
    """Give a pod its account, and the account's image pull secrets if it has none, in place.

    Raises
    ------
    moorage.kinds.status.StatusError
        403: the account does not exist, or the pod is a mirror pod and names one.
    """
    spec = pod["spec"]
    name = text(spec, "serviceAccountName")
    if MIRROR in child(pod, "metadata", "annotations"):
        if name:
            why = "a mirror pod may not reference service accounts"
            raise status.forbidden(resource, name_of(pod), why)
        return
    if not name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name = DEFAULT
    namespace = text(pod, "metadata", "namespace")
    account = ctx.lookup("serviceaccounts", namespace, name)
    if account is None:
        if name == DEFAULT:
            return
        why = (
            f"error looking up service account {namespace}/{name}: "
            f'serviceaccount "{name}" not found'
        )
        raise status.forbidden(resource, name_of(pod), why)
    secrets = objects(account, "imagePullSecrets")
    if secrets and not spec.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [{"name": text(each, "name")} for each in secrets]
