"""Admission: what changes an object before it is validated, and what may refuse it afterwards.

Place in the flow: `writing` asks here, with an object in the ruled form. The order is that of
kubernetes v1.36 pkg/kubeapiserver/options/plugins.go: the plugins of the kinds
(`moorage.kinds.served.ServedKind.admit`), mutating policies and webhooks, and all of them once more
where a client's rule has changed something (`moorage.policies.mutating_chain`); then limit ranges,
validating policies and webhooks, and at last quotas, in one step with the write.
"""

from __future__ import annotations

from typing import NamedTuple

from moorage.kinds.kind import Obj
from moorage.kinds.quotas.limit_range import limit_faults
from moorage.kinds.status import forbidden
from moorage.kinds.tree import text
from moorage.policies.mutating_chain import ClientStep, Invocations, MutatingChain
from moorage_sandbox.apiserver.admission.quota import Quotas
from moorage_sandbox.apiserver.catalog import Served
from moorage_sandbox.apiserver.policies.denying import Policies
from moorage_sandbox.apiserver.policies.mutating import Mutations
from moorage_sandbox.apiserver.policies.stored import write_of
from moorage_sandbox.apiserver.rbac.escalation import Escalation
from moorage_sandbox.apiserver.webhooks.admission import Webhooks
from moorage_sandbox.apiserver.world import World
from moorage_sandbox.storage.record import Record


class StoredRules(NamedTuple):
    """The policies and webhooks that clients have stored to decide about writes.

    Parameters
    ----------
    policies
        The policies that refuse writes.
    mutations
        The policies that change objects.
    webhooks
        The programs of the clients that do both.
    """

    policies: Policies
    mutations: Mutations
    webhooks: Webhooks


class Admission:
    """Changes objects, and checks them against policies, limit ranges and quotas.

    Parameters
    ----------
    world
        Holds the limit ranges and quotas.
    quotas
        Counts the quotas.
    escalation
        Checks objects that grant rights.
    stored
        Policies and webhooks that clients have stored.

    Attributes
    ----------
    webhooks
        Asked about each write by its verb.
    """

    def __init__(
        self, world: World, quotas: Quotas, escalation: Escalation, stored: StoredRules
    ) -> None:
        self._world = world
        self._policies, self._mutations, self.webhooks = stored
        self._hooks = self.webhooks.shelves
        self._quotas = quotas
        self._escalation = escalation

    def mutated(
        self, served: Served, new: Obj, old: Obj | None, *, subresource: str = "", dry_run: bool
    ) -> Obj:
        """Return an object as the admission plugins, policies and webhooks change it.

        Parameters
        ----------
        served
            The resource as it is called.
        new, old
            The object in the ruled form, which may be changed; and the object before, None when it
            is new.
        subresource
            ``status``, the name of another part of the object, or empty.
        dry_run
            The object will not be stored.

        Raises
        ------
        StatusError
            As a plugin, a policy or a webhook says.
        AnswersNeeded
            A webhook has to answer first.
        """

        def admit(obj: Obj) -> None:
            if not subresource:
                served.rules.admit(obj, old, self._world)

        if not (self._mutations.stored.binding_shelf or any(self._hooks)):
            admit(new)
            return new
        chain = MutatingChain(
            admit=admit,
            client_steps=self._client_steps(served, old or new, subresource, dry_run=dry_run),
            write_of=lambda obj: write_of(self._world, served, (obj, old), subresource),
            defaulted=served.to_ruled,
        )
        return chain.mutated(new)

    def _client_steps(
        self, served: Served, obj: Obj, subresource: str, *, dry_run: bool
    ) -> list[ClientStep]:
        """Return the steps of policies and webhooks, in upstream's order."""
        steps = []
        if subresource in ("", "status"):
            steps.append(self._mutations.step(served, dry_run=dry_run))
        if any(self._hooks):
            resource, name = served.kind.resource, text(obj, "metadata", "name")
            steps.append(self.webhooks.step(served, resource, name=name, dry_run=dry_run))
        return [step for step in steps if step is not None]

    def check_webhooks(
        self,
        served: Served,
        objects: tuple[Obj | None, Obj | None],
        *,
        subresource: str = "",
        name: str,
        dry_run: bool,
    ) -> None:
        """Refuse a write that a webhook denies; ``objects`` are (new, old) in the ruled form.

        Raises
        ------
        StatusError
            As a webhook says.
        AnswersNeeded
            A webhook has to answer first.
        """
        if any(self._hooks):
            write = write_of(self._world, served, objects, subresource)
            resource = served.kind.resource
            self.webhooks.validate(served, resource, write, name=name, dry_run=dry_run)

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
        return bool(self._policies.stored.binding_shelf) or any(self._hooks)

    def check_delete(self, served: Served, record: Record, *, dry_run: bool) -> None:
        """Refuse a client's delete that a policy or a webhook denies.

        Raises
        ------
        StatusError
            As the policy says.
        """
        if self._policies.stored.binding_shelf:
            self._policies.check_write(served, None, served.ruled(record), dry_run=dry_run)
        if any(self._hooks):
            resource, name = served.kind.resource, record.name
            write = write_of(self._world, served, (None, served.ruled(record)), "")
            step = self.webhooks.step(served, resource, name=name, dry_run=dry_run)
            if step is not None:
                step(write, Invocations())
            self.webhooks.validate(served, resource, write, name=name, dry_run=dry_run)

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
        if old is None:
            # A limit range holds from when it is set: objects stored before may stay.
            self._check_limits(served, new)
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
        if subresource == "resize":
            self._check_limits(served, new)
        self._policies.check_write(served, new, old, subresource=subresource, dry_run=dry_run)

    def check_update(
        self, served: Served, new: Obj, old: Obj, *, subresource: str, dry_run: bool
    ) -> None:
        """Refuse a change of an object, or of a part of it, that its caller may not store.

        Raises
        ------
        StatusError
            403, or as a policy says.
        """
        if not subresource:
            self.admit_object(served, new, old, dry_run=dry_run)
        elif subresource == "status":
            self.check_status(served, new, old, dry_run=dry_run)
        else:
            self.check_part(served, new, old, subresource=subresource, dry_run=dry_run)

    def _check_limits(self, served: Served, new: Obj) -> None:
        """Refuse a pod or a claim that exceeds a limit range of its namespace."""
        if served.shelf not in ("pods", "persistentvolumeclaims"):
            return
        namespace = text(new, "metadata", "namespace")
        ranges = list(self._world.stored_objects("limitranges", namespace))
        if ranges and (faults := limit_faults(served.shelf, new, ranges)):
            why = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
            raise forbidden(served.kind.resource, text(new, "metadata", "name"), why)

    def check_quotas(self, served: Served, new: Obj, old: Obj | None) -> None:
        """Refuse an object that exceeds a quota.

        The last check, in one step with the write: the quotas count every write.

        Raises
        ------
        StatusError
            403.
        """
        if self._quotas.used and served.kind.resource.namespaced:
            self._quotas.check_quotas(served, new, old)
