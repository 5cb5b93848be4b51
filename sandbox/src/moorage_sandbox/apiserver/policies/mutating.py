"""Changes objects by the stored MutatingAdmissionPolicies, before they are validated.

Place in the flow: the admission of a write. Mirrors kubernetes v1.36 apiserver
pkg/admission/plugin/policy/mutating/dispatcher.go.
"""

from __future__ import annotations

from moorage.kinds.kind import Obj
from moorage.policies.mutating import mutated_write
from moorage_sandbox.apiserver.catalog import Served
from moorage_sandbox.apiserver.policies.stored import StoredPolicies
from moorage_sandbox.apiserver.world import World


class Mutations:
    """The stored MutatingAdmissionPolicies.

    Parameters
    ----------
    world
        Holds them, and their parameters.
    """

    def __init__(self, world: World) -> None:
        self.stored = StoredPolicies(
            world, "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"
        )

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
        moorage.cel.evaluators.TooLongHere
            The policies may take long, and the caller is in the loop.
        """
        write = self.stored.write_to_match(served, new, old, subresource)
        if write is None:
            return new
        changed = mutated_write(self.stored, write, served.kind, dry_run=dry_run)
        assert changed.new is not None, "only an object that is stored is changed"
        return new if changed.new == write.new else served.to_ruled(changed.new)
