"""Refuses the writes that policies deny.

Place in the flow: the admission of a write, before quotas are counted. Mirrors kubernetes v1.36
apiserver pkg/admission/plugin/policy/validating/dispatcher.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from moorage.api.meta import LabelSelector
from moorage.api.selectors import compile_label_selector
from moorage.apiserver.custom.rules.evaluation import USED_UP
from moorage.apiserver.custom.rules.judging import judged
from moorage.apiserver.custom.rules.runtime import is_installed
from moorage.apiserver.kind import Obj
from moorage.apiserver.kinds.tree import Json, child, strings, text
from moorage.apiserver.policies.expressions import Failed, failures, missing, read_policy
from moorage.apiserver.policies.matching import Write, matches
from moorage.apiserver.status import StatusError, forbidden
from moorage.apiserver.views import Served
from moorage.apiserver.world import World

_POLICIES: Final = "validatingadmissionpolicies"
_BINDINGS: Final = "validatingadmissionpolicybindings"
_GROUP: Final = "admissionregistration.k8s.io"
_CODES: Final = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}


class Policies:
    """The stored policies and bindings.

    Parameters
    ----------
    world
        Holds them, and their parameters.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._shelf = world.catalog.by_plural(_BINDINGS).shelf

    @property
    def exist(self) -> bool:
        """Whether there are any bindings: policies without a binding deny nothing."""
        return len(self._world.store.shelf(self._shelf)) > 0

    def check(
        self,
        served: Served,
        new: Obj | None,
        old: Obj | None,
        *,
        subresource: str = "",
        dry_run: bool,
    ) -> None:
        """Refuse a write that a policy denies.

        Parameters
        ----------
        served
            The resource as it is called.
        new, old
            The object in the ruled form, None when it is deleted; and the object before, None when
            it is new.
        subresource
            ``status``, or empty.
        dry_run
            The object will not be stored.

        Raises
        ------
        StatusError
            Of the reason that the policy's validation names: 422 where it names none.
        moorage.apiserver.custom.rules.judging.TooLongHere
            The policies may take long, and the caller is in the loop.
        """
        if not self.exist or not is_installed():
            return
        resource = served.kind.resource
        if resource.group == _GROUP:
            # Otherwise a policy could keep its own removal from happening.
            return
        write = self._write(served, new, old, subresource)
        for binding in self._world.objects(_BINDINGS):
            spec = binding["spec"]
            policy = self._world.lookup(_POLICIES, None, text(spec, "policyName"))
            if policy is None or "Deny" not in strings(spec, "validationActions"):
                continue
            rules = child(policy, "spec")
            if not matches(child(rules, "matchConstraints"), write):
                continue
            if not matches(child(spec, "matchResources"), write) or missing(read_policy(rules)):
                continue
            request = self._request(write, dry_run=dry_run)
            for failed in self._failures(rules, spec, write, request):
                raise _denied(write, policy, binding, failed)

    def _write(self, served: Served, new: Obj | None, old: Obj | None, subresource: str) -> Write:
        resource = served.kind.resource
        namespace = text(new or old or {}, "metadata", "namespace")
        versions = frozenset(
            kind.resource.version
            for kind in self._world.catalog.kinds
            if (kind.resource.group, kind.resource.plural) == (resource.group, resource.plural)
        )
        return Write(
            operation="CREATE" if old is None else "DELETE" if new is None else "UPDATE",
            resource=resource,
            versions=versions,
            subresource=subresource,
            new=None if new is None else served.served_from_ruled(new),
            old=None if old is None else served.served_from_ruled(old),
            namespace=self._world.lookup("namespaces", None, namespace) if namespace else None,
        )

    def _request(self, write: Write, *, dry_run: bool) -> Json:
        """Return the variable ``request``."""
        resource, user = write.resource, self._world.caller
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        called = {key: kind[key] for key in ("group", "version")} | {"resource": resource.plural}
        return {
            "kind": kind,
            "resource": called,
            "subResource": write.subresource,
            "requestKind": kind,
            "requestResource": called,
            "requestSubResource": write.subresource,
            "name": text(write.obj, "metadata", "name"),
            "namespace": text(write.obj, "metadata", "namespace"),
            "operation": write.operation,
            "userInfo": {"username": user.name, "groups": list(user.groups)},
            "dryRun": dry_run,
        }

    def _failures(
        self, policy: Json, binding: Json, write: Write, request: Json
    ) -> Iterator[Failed]:
        """Yield the failures of a policy, once for each object with parameters."""
        for params in self._params(policy, binding, write):
            if isinstance(params, Failed):
                if policy.get("failurePolicy") != "Ignore":
                    yield params
                continue
            values: dict[str, Any] = {
                "object": write.new,
                "oldObject": write.old,
                "request": request,
                "params": params,
                "namespaceObject": write.namespace,
            }
            found: list[Failed] | None = judged(failures, read_policy(policy), values)
            yield from [Failed(USED_UP, "")] if found is None else found

    def _params(self, policy: Json, binding: Json, write: Write) -> Iterator[Obj | Failed | None]:
        """Yield each object with parameters; None where the policy has none, or why it fails."""
        kind, ref = child(policy, "paramKind"), child(binding, "paramRef")
        if not kind or not ref:
            yield None
            return
        served = self._world.catalog.by_kind(kind.get("apiVersion"), kind.get("kind"))
        if served is None:
            yield Failed(
                f"failed to find resource referenced by paramKind: '{text(kind, 'kind')}'", ""
            )
            return
        namespace = ""
        if served.kind.resource.namespaced:
            namespace = text(ref, "namespace") or text(write.obj, "metadata", "namespace")
        found = [
            served.read(record)
            for record in self._world.store.shelf(served.shelf).records(namespace)
            if _refers(ref, record.name, record.labels)
        ]
        if not found and ref.get("parameterNotFoundAction") != "Allow":
            why = "no params found for policy binding with `Deny` parameterNotFoundAction"
            yield Failed(why, "")
        yield from found


def _refers(ref: Json, name: str, labels: Any) -> bool:
    if text(ref, "name"):
        return text(ref, "name") == name
    selector = msgspec.convert(child(ref, "selector"), LabelSelector)
    return compile_label_selector(selector).matches(labels)


def _denied(write: Write, policy: Obj, binding: Obj, failed: Failed) -> StatusError:
    message = (
        f"ValidatingAdmissionPolicy '{policy['metadata']['name']}' with binding "
        f"'{binding['metadata']['name']}' denied request: {failed.message}"
    )
    name = text(write.obj, "metadata", "name")
    error = forbidden(write.resource, name, message, causes=[{"message": message}])
    reason = failed.reason or "Invalid"
    return StatusError(_CODES.get(reason, 422), reason, error.message, details=error.details)
