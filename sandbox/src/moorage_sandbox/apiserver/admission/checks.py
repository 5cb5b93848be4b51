"""The last check before an object is stored: rights, policies, and limits of its namespace.

Place in the flow: `writing` calls it once an object is known to be valid. Admission that changes
objects belongs to the kinds (``prepare_create``).
"""

from __future__ import annotations

from moorage.kinds.kind import Obj
from moorage.kinds.quotas.limit_range import limit_faults
from moorage.kinds.status import forbidden
from moorage.kinds.tree import text
from moorage_sandbox.apiserver.admission.quota import Quotas
from moorage_sandbox.apiserver.catalog import Served
from moorage_sandbox.apiserver.policies.denying import Policies
from moorage_sandbox.apiserver.policies.mutating import Mutations
from moorage_sandbox.apiserver.rbac.escalation import Escalation
from moorage_sandbox.apiserver.world import World
from moorage_sandbox.storage.record import Record


class Admission:
    """Checks objects against policies, limit ranges and quotas.

    Parameters
    ----------
    world
        Holds the limit ranges and quotas.
    quotas
        Counts the quotas.
    escalation
        Checks objects that grant rights.
    policies
        Checks objects against the policies that clients have stored.
    mutations
        Changes objects as the policies that clients have stored say.
    """

    def __init__(
        self,
        world: World,
        quotas: Quotas,
        escalation: Escalation,
        policies: Policies,
        mutations: Mutations,
    ) -> None:
        self._world = world
        self.mutations = mutations
        self._policies = policies
        self._quotas = quotas
        self._escalation = escalation

    def check_may_create(self) -> None:
        """Refuse an apply or a PUT that would create an object its caller may not create.

        Raises
        ------
        StatusError
            403.
        """
        self._escalation.check_may_create()

    @property
    def checks_deletes(self) -> bool:
        """Whether `check_delete` may refuse anything."""
        return bool(self._policies.stored.binding_shelf)

    def check_delete(self, served: Served, record: Record, *, dry_run: bool) -> None:
        """Refuse a client's delete that a policy denies.

        Raises
        ------
        StatusError
            As the policy says.
        """
        if self._policies.stored.binding_shelf:
            self._policies.check_write(served, None, served.ruled(record), dry_run=dry_run)

    def check_status(self, served: Served, new: Obj, old: Obj, *, dry_run: bool) -> None:
        """Refuse a new status that its caller may not write.

        Raises
        ------
        StatusError
            403, or as a policy says.
        """
        self._escalation.check_status(served, new, old)
        self._policies.check_write(served, new, old, subresource="status", dry_run=dry_run)

    def admit_object(self, served: Served, new: Obj, old: Obj | None, *, dry_run: bool) -> None:
        """Refuse an object that its caller may not store; ``old`` is None for a new object.

        Raises
        ------
        StatusError
            403, or as a policy says.
        """
        if served.kind.grants_rights:
            self._escalation.check_grants(served, new, old)
        if self._policies.stored.binding_shelf:
            self._policies.check_write(served, new, old, dry_run=dry_run)

    def check_part(
        self, served: Served, new: Obj, old: Obj, *, subresource: str, dry_run: bool
    ) -> None:
        """Refuse a change of a part of an object, such as a resize or an approval.

        Raises
        ------
        StatusError
            403, or as a policy says.
        """
        self._escalation.check_part(served, old, subresource=subresource)
        self._policies.check_write(served, new, old, subresource=subresource, dry_run=dry_run)

    def check_bounds(
        self, served: Served, new: Obj, old: Obj | None, *, resized: bool = False
    ) -> None:
        """Refuse an object that exceeds a quota or, if it is new or resized, a limit range.

        The last check, in one step with the write: the quotas count every write.

        Raises
        ------
        StatusError
            403.
        """
        if not served.kind.resource.namespaced:
            return
        if (old is None or resized) and served.shelf in ("pods", "persistentvolumeclaims"):
            namespace = text(new, "metadata", "namespace")
            ranges = list(self._world.stored_objects("limitranges", namespace))
            if ranges and (faults := limit_faults(served.shelf, new, ranges)):
                why = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
                raise forbidden(served.kind.resource, text(new, "metadata", "name"), why)
        if self._quotas.used:
            self._quotas.check_quotas(served, new, old)
