"""Changes objects as MutatingAdmissionPolicies say, before they are validated.

Place in the flow: `moorage.apiserver.writing` asks here once the new object has its defaults.
Mirrors kubernetes v1.36 apiserver pkg/admission/plugin/policy/mutating: dispatcher.go, patch/smd.go
and patch/json_patch.go.
"""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch

from moorage.apiserver.applying.values import atomics_of, merged
from moorage.apiserver.patches import json_patch
from moorage.apiserver.policies.asking import Asked, Bound, BoundPolicies, refusal
from moorage.apiserver.policies.matching import Write
from moorage.apiserver.views import Served
from moorage.apiserver.world import World
from moorage.kinds.kind import Obj
from moorage.kinds.served import ServedKind
from moorage.kinds.status import StatusError
from moorage.rules.evaluation import USED_UP
from moorage.rules.expressions import (
    APPLY_CONFIGURATION,
    Failed,
    Mutation,
    applies,
    patch_of,
)
from moorage.rules.judging import judged


class _Unfit(Exception):  # noqa: N818
    """A mutation has no result, or one that does not fit the object."""


class Mutations:
    """The stored MutatingAdmissionPolicies.

    Parameters
    ----------
    world
        Holds them, and their parameters.
    """

    def __init__(self, world: World) -> None:
        self._bound = Bound(world, "mutatingadmissionpolicies", "mutatingadmissionpolicybindings")

    @property
    def exist(self) -> bool:
        """Whether there are any bindings: policies without a binding change nothing."""
        return self._bound.exist

    def mutated(
        self, served: Served, new: Obj, old: Obj | None, *, subresource: str = "", dry_run: bool
    ) -> Obj:
        """Return an object as policies change it.

        Parameters
        ----------
        served
            The resource as it is called.
        new, old
            The object in the ruled form, which may be changed; and the object before, None when it
            is new.
        subresource
            ``status``, or empty.
        dry_run
            The object will not be stored.

        Raises
        ------
        StatusError
            422: a policy whose failure policy is ``Fail`` has failed.
        moorage.rules.judging.TooLongHere
            The policies may take long, and the caller is in the loop.
        """
        write = self._bound.write_seen(served, new, old, subresource)
        if write is None:
            return new
        found = mutated_write(self._bound, write, served.kind, dry_run=dry_run)
        assert found.new is not None, "only an object that is stored is changed"
        return new if found.new == write.new else served.to_ruled(found.new)


def mutated_write(bound: BoundPolicies, write: Write, kind: ServedKind, *, dry_run: bool) -> Write:
    """Return a write as policies change it.

    Raises
    ------
    StatusError
        422: a policy whose failure policy is ``Fail`` has failed.
    moorage.rules.judging.TooLongHere
        The policies may take long, and the caller is in the loop.
    """
    first = write.new
    for asked in bound.asked(write):
        write = _changed(bound, asked, write, kind, dry_run=dry_run)
    if write.new != first:
        # A policy may have to look once more at what the policies after it have changed.
        for asked in bound.asked(write):
            if asked.policy.reinvocation_policy == "IfNeeded":
                write = _changed(bound, asked, write, kind, dry_run=dry_run)
    return write


def _changed(
    bound: BoundPolicies, asked: Asked, write: Write, kind: ServedKind, *, dry_run: bool
) -> Write:
    """Return a write with the mutations of a policy, one after the other."""
    try:
        _usable(asked.params or {})
        values = bound.variables(asked, write, dry_run=dry_run)
        if not _usable(judged(applies, asked.policy, values)):
            return write
        for mutation in asked.policy.mutations:
            values = bound.variables(asked, write, dry_run=dry_run)
            patch = _usable(judged(patch_of, asked.policy, mutation, values))
            assert write.new is not None, "only an object that is stored is changed"
            write = write.with_new(_patched(write.new, patch, mutation, kind))
    except _Unfit as fault:
        if asked.policy.failure_policy == "Ignore":
            return write
        message = f"policy '{asked.name}' with binding '{asked.binding_name}' denied request: "
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
        found = _applied(obj, patch, kind)
    else:
        try:
            found = json_patch(copy.deepcopy(obj), patch)
        except StatusError as error:
            if isinstance(error.__cause__, jsonpatch.JsonPatchTestFailed):
                return obj
            raise _Unfit(f"JSON patch: {error.__cause__ or error}") from error
    faults = kind.shape.type_errors(found) + [
        f'unknown field "{path}"' for path in kind.shape.unknown_fields(found)
    ]
    if faults or (found["apiVersion"], found["kind"]) != (obj["apiVersion"], obj["kind"]):
        raise _Unfit(faults[0] if faults else "the version and the kind may not change")
    kind.default(found)
    return found


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
    found: Obj = merged(copy.deepcopy(obj), patch, layout)
    return found
