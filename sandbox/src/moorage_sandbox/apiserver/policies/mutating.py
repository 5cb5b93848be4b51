"""The stored MutatingAdmissionPolicies, as a step of the chain that changes objects.

Place in the flow: the admission of a write. Mirrors kubernetes v1.36 apiserver
pkg/admission/plugin/policy/mutating/dispatcher.go.
"""

from __future__ import annotations

from moorage.cel.authorizer import Authorize
from moorage.policies.matching import Write
from moorage.policies.mutating import mutated_write
from moorage.policies.mutating_chain import ClientStep, Invocations
from moorage_sandbox.apiserver.catalog import Served
from moorage_sandbox.apiserver.policies.stored import StoredPolicies
from moorage_sandbox.apiserver.world import World


class Mutations:
    """The stored MutatingAdmissionPolicies.

    Parameters
    ----------
    world
        Holds them, and their parameters.
    authorize
        Decides about the rights of callers.
    """

    def __init__(self, world: World, authorize: Authorize) -> None:
        self.stored = StoredPolicies(
            world,
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            authorize=authorize,
        )

    def step(self, served: Served, *, dry_run: bool) -> ClientStep | None:
        """Return the step for writes of a resource; None where no policy is about them.

        The step raises `StatusError` (422) where a policy has failed whose failure policy is
        ``Fail``, and `moorage.cel.evaluators.TooLongHere` where the policies may take long, and the
        caller is in the loop.

        Parameters
        ----------
        served
            The resource as it is called.
        dry_run
            The object will not be stored.
        """
        if not self.stored.are_about(served):
            return None

        def changed(write: Write, invocations: Invocations) -> Write:
            return mutated_write(self.stored, write, served.kind, invocations, dry_run=dry_run)

        return changed
