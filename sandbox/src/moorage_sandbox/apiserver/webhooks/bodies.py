"""Asks webhooks about calls whose body is no object of the resource: bindings, evictions, scales.

Place in the flow: `resource_calls` and `subresources.scale` ask here while there are webhooks.
"""

from __future__ import annotations

import msgspec

from moorage.api.resources import ResourceType
from moorage.kinds.built_in import subresource_body
from moorage.kinds.kind import Obj
from moorage.policies.matching import Write
from moorage_sandbox.apiserver.catalog import Target
from moorage_sandbox.apiserver.webhooks.admission import Webhooks
from moorage_sandbox.apiserver.webhooks.answers import current_answers
from moorage_sandbox.apiserver.wire.bodies import decode_json, typed
from moorage_sandbox.apiserver.wire.requests import Request
from moorage_sandbox.apiserver.world import World


class BodyReviews:
    """Reviews the bodies of subresources.

    Parameters
    ----------
    world
        Holds the namespaces.
    webhooks
        Asked about each body.
    """

    def __init__(self, world: World, webhooks: Webhooks) -> None:
        self._world = world
        self._webhooks = webhooks

    def reviewed_call(self, target: Target, request: Request, *, dry_run: bool) -> Request:
        """Return a POST to a subresource with the body as webhooks change it.

        Raises
        ------
        StatusError
            As a webhook says; 400: the body cannot be read.
        AnswersNeeded
            A webhook has to answer first.
        """
        if not any(self._webhooks.shelves) or not request.body:
            return request
        kind, _ = subresource_body(target.served.kind.resource, target.subresource)
        body = typed(decode_json(request), kind)
        after = self.reviewed_body(target, kind, (body, None), dry_run=dry_run)
        return msgspec.structs.replace(request, body=msgspec.json.encode(after))

    def reviewed_body(
        self, target: Target, kind: ResourceType, objects: tuple[Obj, Obj | None], *, dry_run: bool
    ) -> Obj:
        """Return the body of a subresource as webhooks change it.

        Parameters
        ----------
        target
            The subresource.
        kind
            Type of the body.
        objects
            The body, and the body that a reader would have got; None for a POST.
        dry_run
            Nothing will be stored.

        Raises
        ------
        StatusError
            As a webhook says.
        AnswersNeeded
            A webhook has to answer first.
        """
        new, old = objects
        if not any(self._webhooks.shelves):
            return new
        resource, namespace = target.served.kind.resource, target.namespace
        write = Write(
            operation="CREATE" if old is None else "UPDATE",
            resource=resource,
            versions=frozenset({resource.version}),
            subresource=target.subresource,
            new=new | {"metadata": new["metadata"] | {"namespace": namespace}},
            old=old,
            namespace=self._world.lookup("namespaces", None, namespace) if namespace else None,
        )
        subject = self._webhooks.subject_of(write, kind, name=target.name, dry_run=dry_run)
        patched = self._webhooks.mutate(target.served, subject)
        if patched is not None and subject is not None:
            new = patched
            subject = msgspec.structs.replace(subject, write=write.with_new(patched))
        self._webhooks.validate(target.served, subject)
        if (answers := current_answers()) is not None:
            answers.reviewed = True
        return new
