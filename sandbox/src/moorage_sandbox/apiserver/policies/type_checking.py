"""The status of a ValidatingAdmissionPolicy: expressions that do not fit the types of objects.

Place in the flow: each write of a policy is reported here, and the status follows. A warning
changes nothing about the policy. Mirrors kubernetes v1.36 apiserver
pkg/admission/plugin/policy/validating/typechecking.go, and the controller
pkg/controller/validatingadmissionpolicystatus.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Final

from moorage.api.resources import VALIDATING_ADMISSION_POLICIES
from moorage.cel.runtime import is_installed, new_environment, type_fault
from moorage.kinds.kind import Obj
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, child, objects, strings, text
from moorage_sandbox.apiserver.catalog import Served
from moorage_sandbox.apiserver.world import World
from moorage_sandbox.storage.record import Record

_KINDS_MAX: Final = 10
_OBJECTS: Final = ("object", "oldObject")
_UNTYPED: Final = ("authorizer", "params", "request", "variables")


class TypeChecking:
    """Writes the status of policies.

    Parameters
    ----------
    world
        Holds the policies, and knows the kinds.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        world.on_write(VALIDATING_ADMISSION_POLICIES.qualified, self._written, apart=True)

    def _written(self, served: Served, before: Record | None, after: Record | None) -> None:
        if after is None or not is_installed():
            return
        policy = after.decode()
        generation = policy["metadata"]["generation"]
        if child(policy, "status").get("observedGeneration") == generation:
            return
        warnings = self._warnings(child(policy, "spec"))
        found: Obj = {"expressionWarnings": warnings} if warnings else {}
        status = {"observedGeneration": generation, "typeChecking": found}
        checked = policy | {"status": child(policy, "status") | status}
        self._world.run_in_one_step(lambda: self._store_status(served, after, checked))

    def _store_status(self, served: Served, looked_at: Record, checked: Obj) -> None:
        """Store a policy with its status, unless the policy has been written meanwhile."""
        if self._world.store.shelf(served.shelf).get(looked_at.key) is looked_at:
            self._world.store_form(served, checked)

    def _warnings(self, spec: Json) -> list[Obj]:
        # Google's protobuf runtime is imported with the first policy.
        from moorage_sandbox.rules.object_types import ObjectTypes

        types, checks = ObjectTypes(), []
        namespaces = self._world.catalog.get("v1", "namespaces")
        assert namespaces is not None, "namespaces are always served"
        common = dict.fromkeys(_UNTYPED, "") | {"namespaceObject": types.add(namespaces.kind)}
        if (params := self._params_kind(spec)) is not None:
            common["params"] = types.add(params)
        for kind in self._kinds(spec):
            name, resource = types.add(kind), kind.resource
            environment = new_environment(common | dict.fromkeys(_OBJECTS, name), types.pool)
            shown = f"{resource.group}/{resource.version}, Kind={resource.kind}"
            checks.append((shown, environment))
        warnings = []
        for place, expression in _expressions(spec):
            faults = [(shown, type_fault(each, expression)) for shown, each in checks]
            if told := "\n".join(f"{shown}: {fault}\n" for shown, fault in faults if fault):
                warnings.append({"fieldRef": place, "warning": told})
        return warnings

    def _params_kind(self, spec: Json) -> ServedKind | None:
        wanted = child(spec, "paramKind")
        found = self._world.catalog.by_kind(wanted.get("apiVersion"), wanted.get("kind"))
        return found.kind if found else None

    def _kinds(self, spec: Json) -> list[ServedKind]:
        """Return the kinds that the rules of a policy name, without those of wildcards."""
        kinds = {}
        for rule in objects(spec, "matchConstraints", "resourceRules"):
            groups, versions = strings(rule, "apiGroups"), strings(rule, "apiVersions")
            if "*" in groups or "*" in versions:
                continue
            for group, version, plural in product(groups, versions, strings(rule, "resources")):
                api_version = f"{group}/{version}" if group else version
                if served := self._world.catalog.get(api_version, plural):
                    kinds[group, version, served.kind.resource.kind] = served.kind
        return [kinds[key] for key in sorted(kinds)][:_KINDS_MAX]


def _expressions(spec: Json) -> Iterator[tuple[str, Any]]:
    for index, each in enumerate(objects(spec, "validations")):
        for name in ("expression", "messageExpression"):
            if expression := text(each, name):
                yield f"spec.validations[{index}].{name}", expression
