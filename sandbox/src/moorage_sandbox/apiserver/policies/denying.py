"""Refuses the writes that policies deny, and notes what policies say about the others.

Place in the flow: the admission of a write, before quotas are counted. Mirrors kubernetes v1.36
apiserver pkg/admission/plugin/policy/validating/dispatcher.go.
"""

from __future__ import annotations

from moorage.cel.authorizer import Authorize
from moorage.kinds.kind import Obj
from moorage.policies.denying import denial, judgement_of
from moorage_sandbox.apiserver.catalog import Served
from moorage_sandbox.apiserver.policies.noting import Notes
from moorage_sandbox.apiserver.policies.stored import StoredPolicies
from moorage_sandbox.apiserver.policies.type_checking import TypeChecking
from moorage_sandbox.apiserver.world import World


class Policies:
    """The stored ValidatingAdmissionPolicies.

    Parameters
    ----------
    world
        Holds them, and their parameters.
    authorize
        Decides about the rights of callers.
    """

    def __init__(self, world: World, authorize: Authorize) -> None:
        self.notes = Notes()
        TypeChecking(world)
        self.stored = StoredPolicies(
            world,
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            authorize=authorize,
        )
        self.notes.sources.append(self.stored.binding_shelf)

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
        moorage.cel.evaluators.TooLongHere
            The policies may take long, and the caller is in the loop.
        """
        write = self.stored.write_to_match(served, new, old, subresource)
        if write is None:
            return
        denials = []
        for policy in self.stored.matching_policies(write):
            judgement = judgement_of(self.stored, policy, write, dry_run=dry_run)
            self.notes.add_annotations(policy.name, judgement.annotations)
            for failed in judgement.failures:
                self.notes.add_failure(policy, failed)
                if "Deny" in policy.actions:
                    denials.append(denial(write, policy, failed))
        if denials:
            raise denials[0]
