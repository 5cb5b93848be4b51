"""What the MutatingAdmissionPolicies make of a write.

Place in the flow: the API server and what-if have an object changed here before it is validated.
Mirrors kubernetes v1.36 apiserver pkg/admission/plugin/policy/mutating: dispatcher.go,
patch/smd.go and patch/json_patch.go.
"""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch

from moorage.cel.budget import USED_UP
from moorage.kinds.json_patch import json_patch
from moorage.kinds.kind import Obj
from moorage.kinds.schema.merging import atomics_of, merged
from moorage.kinds.served import ServedKind
from moorage.kinds.status import StatusError
from moorage.policies.bound import BoundPolicies, BoundPolicy, refusal
from moorage.policies.expressions import (
    APPLY_CONFIGURATION,
    Failed,
    Mutation,
    applies,
    patch_of,
)
from moorage.policies.matching import Write
from moorage.policies.mutating_chain import Invocations


class _Unfit(Exception):  # noqa: N818
    """A mutation has no result, or one that does not fit the object."""


def mutated_write(
    policies: BoundPolicies,
    write: Write,
    kind: ServedKind,
    invocations: Invocations,
    *,
    dry_run: bool,
) -> Write:
    """Return a write as policies change it in one round of the chain.

    Raises
    ------
    StatusError
        422: a policy whose failure policy is ``Fail`` has failed.
    moorage.cel.evaluators.TooLongHere
        The policies may take long, and the caller is in the loop.
    """
    first = write
    for bound in policies.matching_policies(write):
        if not invocations.is_due(bound.identity):
            continue
        after = _changed(policies, bound, write, kind, dry_run=dry_run)
        if after is None:
            continue
        reinvocable = bound.policy.reinvocation_policy == "IfNeeded"
        invocations.add(bound.identity, changed=after.new != write.new, reinvocable=reinvocable)
        write = after if after.new != write.new else write
    if write is not first:
        # A policy looks once more at its own change, too (dispatcher.go, `Dirty`).
        invocations.require_all()
    return write


def _changed(
    policies: BoundPolicies, bound: BoundPolicy, write: Write, kind: ServedKind, *, dry_run: bool
) -> Write | None:
    """Return a write with the mutations of a policy; None where its conditions do not hold."""
    try:
        _usable(bound.params or {})
        values = policies.variables(bound, write, dry_run=dry_run)
        if not _usable(policies.evaluate(applies, bound.policy, values)):
            return None
        for mutation in bound.policy.mutations:
            values = policies.variables(bound, write, dry_run=dry_run)
            patch = _usable(policies.evaluate(patch_of, bound.policy, mutation, values))
            assert write.new is not None, "only an object that is stored is changed"
            write = write.with_new(_patched(write.new, patch, mutation, kind))
    except _Unfit as fault:
        if bound.policy.failure_policy == "Ignore":
            return write
        message = f"policy '{bound.name}' with binding '{bound.binding_name}' denied request: "
        raise refusal(write, f"{message}{fault}") from fault
    return write


def _usable(answer: Any) -> Any:
    """Return parameters, or the result of an expression; raise where there is none."""
    if answer is None:
        raise _Unfit(USED_UP)
    if isinstance(answer, Failed):
        raise _Unfit(answer.message)
    return answer


def _patched(obj: Obj, patch: Any, mutation: Mutation, kind: ServedKind) -> Obj:
    """Return a served object with a patch; the object stays as it is."""
    if mutation.patch_type == APPLY_CONFIGURATION:
        patched = _applied(obj, patch, kind)
    else:
        try:
            patched = json_patch(copy.deepcopy(obj), patch)
        except StatusError as error:
            if isinstance(error.__cause__, jsonpatch.JsonPatchTestFailed):
                return obj
            raise _Unfit(f"JSON patch: {error.__cause__ or error}") from error
    faults = kind.shape.type_errors(patched) + [
        f'unknown field "{path}"' for path in kind.shape.unknown_fields(patched)
    ]
    if faults or (patched["apiVersion"], patched["kind"]) != (obj["apiVersion"], obj["kind"]):
        raise _Unfit(faults[0] if faults else "the version and the kind may not change")
    kind.default(patched)
    return patched


def _applied(obj: Obj, patch: Any, kind: ServedKind) -> Obj:
    """Return an object with a configuration laid over it.

    Notes
    -----
    A value that is owned as a whole may not be set: the rest of it would be lost by accident.
    """
    layout = kind.shape.layout()
    atomics = atomics_of(patch, layout)
    if atomics:
        listed = ", ".join(atomics)
        raise _Unfit(
            "error applying patch: invalid ApplyConfiguration: "
            f"may not mutate atomic arrays, maps or structs: {listed}"
        )
    configured: Obj = merged(copy.deepcopy(obj), patch, layout)
    return configured
