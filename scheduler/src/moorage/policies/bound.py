"""The policies that are about a write, with their bindings and their parameters.

Place in the flow: `denying` and `mutating` evaluate the policies that this module returns. Mirrors
kubernetes v1.36 apiserver pkg/admission/plugin/policy/generic/policy_dispatcher.go.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec

from moorage.api.meta import LabelSelector
from moorage.api.selectors import compile_label_selector
from moorage.cel.authorizer import Authorize, authorizer_values
from moorage.kinds.kind import Obj
from moorage.kinds.status import StatusError, forbidden
from moorage.kinds.tree import Json, child, strings, text
from moorage.kinds.users import User
from moorage.policies.expressions import (
    Failed,
    Policy,
    evaluate_with_rights,
    missing,
    read_policy,
)
from moorage.policies.matching import Write, matches

GROUP: Final = "admissionregistration.k8s.io"
"""The API group of policies; no policy is about a write in it."""
_CODES: Final = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}

Chosen: TypeAlias = Callable[[str, Any], bool]
"""Whether an object of a name with labels is wanted."""


class BoundPolicy(NamedTuple):
    """A policy that is about a write, by one of its bindings.

    Parameters
    ----------
    name
        Name of the policy.
    binding
        The binding.
    policy
        The part of the policy that is evaluated.
    params
        An object with parameters; None where the policy has none, or the reason why there is none.
    """

    name: str
    binding: Obj
    policy: Policy
    params: Obj | Failed | None

    @property
    def binding_name(self) -> str:
        """Name of the binding."""
        return text(self.binding, "metadata", "name")

    @property
    def identity(self) -> str:
        """The policy, the binding and the object with parameters, as one text."""
        params = {} if self.params is None or isinstance(self.params, Failed) else self.params
        meta = child(params, "metadata")
        return f"{self.name}/{self.binding_name}/{text(meta, 'namespace')}/{text(meta, 'name')}"

    @property
    def actions(self) -> list[str]:
        """The actions of the binding on a validation that fails."""
        return strings(self.binding, "spec", "validationActions")


class PolicyObjects(Protocol):
    """The objects that a write meets, policies among them."""

    @property
    def caller(self) -> User:
        """The user who writes."""
        ...

    def lookup(self, plural: str, namespace: str | None, name: str) -> Obj | None:
        """Return an object, None when there is none."""
        ...

    def stored_objects(self, plural: str, namespace: str | None = None) -> Iterable[Obj]:
        """Return all objects of a resource, by namespace and name."""
        ...


class BoundPolicies(ABC):
    """The policies of one kind with their bindings, wherever they are.

    Parameters
    ----------
    objects
        Holds them.
    policies, bindings
        The plurals of the two kinds, with their group where another has the plural, too.
    authorize
        Decides about the rights of callers; without it policies that ask about rights are not
        evaluated.
    """

    def __init__(
        self,
        objects: PolicyObjects,
        policies: str,
        bindings: str,
        *,
        authorize: Authorize | None = None,
    ) -> None:
        self._objects = objects
        self._authorize = authorize
        self._policies = policies
        self._bindings = bindings

    @abstractmethod
    def params_of(self, kind: Json, namespace: str, chosen: Chosen) -> list[Obj] | None:
        """Return the chosen objects of a kind of parameters; None where there is no such kind.

        Parameters
        ----------
        kind
            Its ``apiVersion`` and ``kind``.
        namespace
            Where a kind with namespaces is looked up.
        chosen
            Whether an object of a name with labels is wanted.
        """

    def matching_policies(self, write: Write) -> Iterator[BoundPolicy]:
        """Yield the policies that are about a write, once for each object with parameters."""
        for binding in self._objects.stored_objects(self._bindings):
            spec = binding["spec"]
            policy = self._objects.lookup(self._policies, None, text(spec, "policyName"))
            if policy is None:
                continue
            rules = child(policy, "spec")
            if not matches(child(rules, "matchConstraints"), write):
                continue
            read = read_policy(rules)
            if not matches(child(spec, "matchResources"), write):
                continue
            if missing(read, knows_rights=self._authorize is not None):
                continue
            for params in self._params(rules, spec, write):
                yield BoundPolicy(policy["metadata"]["name"], binding, read, params)

    def variables(self, bound: BoundPolicy, write: Write, *, dry_run: bool) -> Mapping[str, Any]:
        """Return the variables that expressions of a policy see."""
        request = self._request(write, dry_run=dry_run)
        return {
            "object": write.new,
            "oldObject": write.old,
            "request": request,
            "params": bound.params,
            "namespaceObject": write.namespace,
            **authorizer_values(request),
        }

    def evaluate(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Have expressions evaluated with the rights of callers; see `evaluate_with_rights`."""
        return evaluate_with_rights(self._authorize, function, *arguments)

    def _request(self, write: Write, *, dry_run: bool) -> Json:
        """Return the variable ``request``."""
        resource, user = write.resource, self._objects.caller
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
            "userInfo": user.info,
            "dryRun": dry_run,
        }

    def _params(self, policy: Json, binding: Json, write: Write) -> Iterator[Obj | Failed | None]:
        """Yield each object with parameters; None where the policy has none, or why it fails."""
        kind, ref = child(policy, "paramKind"), child(binding, "paramRef")
        if not kind or not ref:
            yield None
            return
        namespace = text(ref, "namespace") or text(write.obj, "metadata", "namespace")
        objects = self.params_of(kind, namespace, partial(_refers, ref))
        if objects is None:
            yield Failed(f"failed to find resource referenced by paramKind: '{text(kind, 'kind')}'")
            return
        if not objects and ref.get("parameterNotFoundAction") != "Allow":
            yield Failed("no params found for policy binding with `Deny` parameterNotFoundAction")
        yield from objects


def _refers(ref: Json, name: str, labels: Any) -> bool:
    if text(ref, "name"):
        return text(ref, "name") == name
    selector = msgspec.convert(child(ref, "selector"), LabelSelector)
    return compile_label_selector(selector).matches(labels)


def refusal(write: Write, why: str, reason: str = "") -> StatusError:
    """Return the refusal of a write by a policy; without a reason it is 422."""
    name = text(write.obj, "metadata", "name")
    error = forbidden(write.resource, name, why, causes=[{"message": why}])
    reason = reason or "Invalid"
    return StatusError(_CODES.get(reason, 422), reason, error.message, details=error.details)
