"""The chain that changes an object before it is validated: admission plugins, policies, webhooks.

Place in the flow: the API server and what-if run it for each object that a client writes. Mirrors
kubernetes v1.36 pkg/kubeapiserver/options/plugins.go (the order), and apiserver
pkg/admission/reinvocation.go with the reinvocation contexts of policies and webhooks.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from moorage.kinds.kind import Obj
from moorage.policies.matching import Write


class Invocations:
    """The policies, or webhooks, that have looked at an object, and those that look once more.

    The second round asks nobody for the first time. It asks those who want it, and only where the
    object has changed since.

    Attributes
    ----------
    round
        0, and 1 where the object is looked at once more.
    changed
        Whether a policy, or a webhook, has changed the object.
    """

    def __init__(self) -> None:
        self.round = 0
        self.changed = False
        self._last: Obj | None = None
        self._reinvocable: set[str] = set()
        self._due: set[str] = set()

    def begin_second(self, obj: Obj | None) -> None:
        """Begin the second round, with the object as the steps before have left it."""
        self.round = 1
        if obj != self._last:
            self.require_all()

    def end_round(self, obj: Obj | None) -> None:
        """End a round, with the object as the next step gets it."""
        self._last = obj

    def is_due(self, identity: str) -> bool:
        """Whether a policy or webhook has to look at the object in this round."""
        return not self.round or identity in self._due

    def add(self, identity: str, *, changed: bool, reinvocable: bool) -> None:
        """Note that a policy or webhook has looked, and whether it wants to look once more."""
        if changed:
            self.changed = True
            self.require_all()
        if reinvocable:
            self._reinvocable.add(identity)

    def require_all(self) -> None:
        """Have all look once more that have looked so far and want to."""
        self._due |= self._reinvocable
        self._reinvocable.clear()


ClientStep: TypeAlias = Callable[[Write, Invocations], Write]
"""Returns a write as the policies, or the webhooks, of clients change it; the argument stays."""


class MutatingChain(NamedTuple):
    """The steps that change an object, in their order.

    Parameters
    ----------
    admit
        Changes an object as Kubernetes' own admission plugins do, in place.
    client_steps
        The policies and webhooks of clients, as far as there are any.
    write_of
        Returns the write of an object, as policies and webhooks see it.
    defaulted
        Returns an object that a client has changed with its defaults; it may change the argument.
    """

    admit: Callable[[Obj], None]
    client_steps: Sequence[ClientStep]
    write_of: Callable[[Obj], Write]
    defaulted: Callable[[Obj], Obj]

    def mutated(self, obj: Obj) -> Obj:
        """Return an object as the chain changes it; the argument may be changed."""
        self.admit(obj)
        if not self.client_steps:
            return obj
        steps = [(step, Invocations()) for step in self.client_steps]
        obj = self._changed_by_clients(obj, steps, is_second=False)
        if any(invocations.changed for _, invocations in steps):
            self.admit(obj)
            obj = self._changed_by_clients(obj, steps, is_second=True)
        return obj

    def _changed_by_clients(
        self, obj: Obj, steps: Sequence[tuple[ClientStep, Invocations]], *, is_second: bool
    ) -> Obj:
        write = changed = self.write_of(obj)
        for step, invocations in steps:
            if is_second:
                invocations.begin_second(changed.new)
            changed = step(changed, invocations)
            invocations.end_round(changed.new)
        if changed is write or changed.new is None:
            return obj
        # A copy: the second round compares its object with what the steps have returned.
        return self.defaulted(copy.deepcopy(changed.new))
