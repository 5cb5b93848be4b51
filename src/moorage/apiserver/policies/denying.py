"""Refuses the writes that policies deny, and notes what policies say about the others.

Place in the flow: the admission of a write, before quotas are counted. Mirrors kubernetes v1.36
apiserver pkg/admission/plugin/policy/validating/dispatcher.go.
"""

from __future__ import annotations

from moorage.apiserver.policies.asking import Asked, Bound, BoundPolicies, refusal
from moorage.apiserver.policies.matching import Write
from moorage.apiserver.policies.noting import Notes
from moorage.apiserver.policies.type_checking import TypeChecking
from moorage.apiserver.views import Served
from moorage.apiserver.world import World
from moorage.kinds.kind import Obj
from moorage.kinds.status import StatusError
from moorage.rules.evaluation import USED_UP
from moorage.rules.expressions import Failed, Judgement, judgement
from moorage.rules.judging import judged


class Policies:
    """The stored ValidatingAdmissionPolicies.

    Parameters
    ----------
    world
        Holds them, and their parameters.
    """

    def __init__(self, world: World) -> None:
        self.notes = Notes()
        TypeChecking(world)
        self._bound = Bound(
            world, "validatingadmissionpolicies", "validatingadmissionpolicybindings"
        )

    @property
    def exist(self) -> bool:
        """Whether there are any bindings: policies without a binding deny nothing."""
        return self._bound.exist

    def check_write(
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
            ``status``, the name of another part of the object, or empty.
        dry_run
            The object will not be stored.

        Raises
        ------
        StatusError
            Of the reason that the policy's validation names: 422 where it names none.
        moorage.rules.judging.TooLongHere
            The policies may take long, and the caller is in the loop.
        """
        write = self._bound.write_seen(served, new, old, subresource)
        if write is None:
            return
        denials = []
        for asked in self._bound.asked(write):
            found = judgement_of(self._bound, asked, write, dry_run=dry_run)
            self.notes.add_annotations(asked.name, found.annotations)
            for failed in found.failures:
                self.notes.add_failure(asked, failed)
                if "Deny" in asked.actions:
                    denials.append(denial(write, asked, failed))
        if denials:
            raise denials[0]


def judgement_of(bound: BoundPolicies, asked: Asked, write: Write, *, dry_run: bool) -> Judgement:
    """Return what a policy finds about a write.

    Raises
    ------
    moorage.rules.judging.TooLongHere
        The policy may take long, and the caller is in the loop.
    """
    if isinstance(asked.params, Failed):
        ignored = asked.policy.failure_policy == "Ignore"
        return Judgement([] if ignored else [asked.params])
    values = bound.variables(asked, write, dry_run=dry_run)
    found: Judgement | None = judged(judgement, asked.policy, values)
    return Judgement([Failed(USED_UP)]) if found is None else found


def denial(write: Write, asked: Asked, failed: Failed) -> StatusError:
    """Return the refusal of a write by a validation that does not hold."""
    message = (
        f"ValidatingAdmissionPolicy '{asked.name}' with binding "
        f"'{asked.binding_name}' denied request: {failed.message}"
    )
    return refusal(write, message, failed.reason)
