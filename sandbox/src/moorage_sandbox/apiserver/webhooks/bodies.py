"""Asks webhooks about calls whose body is no object of the resource.

These are bindings, evictions, scales, and connections to containers.

Place in the flow: `resource_calls` and `subresources.scale` ask here while there are webhooks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from moorage.api.resources import ResourceType
from moorage.kinds.built_in import subresource_body
from moorage.kinds.kind import Obj
from moorage.kinds.status import bad_request
from moorage.policies.matching import Write
from moorage.policies.mutating_chain import MutatingChain
from moorage_sandbox.apiserver.catalog import Target
from moorage_sandbox.apiserver.policies.stored import served_versions
from moorage_sandbox.apiserver.webhooks.admission import Webhooks
from moorage_sandbox.apiserver.webhooks.answers import current_answers
from moorage_sandbox.apiserver.wire.bodies import decode_json, typed
from moorage_sandbox.apiserver.wire.requests import Query, Request
from moorage_sandbox.apiserver.world import World

Admit: TypeAlias = Callable[[Obj], None]
"""Changes a body in place."""
_STREAM_FLAGS: Final = ("stdin", "stdout", "stderr", "tty")


def _as_sent(body: Obj) -> None:
    """Change nothing."""


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

    def reviewed_call(
        self, target: Target, request: Request, *, dry_run: bool, admit: Admit = _as_sent
    ) -> Request:
        """Return a POST to a subresource with the body as admission changes it.

        Parameters
        ----------
        target
            The subresource.
        request
            The call.
        dry_run
            Nothing will be stored.
        admit
            Changes the body as Kubernetes' own admission plugins do, in place. Where no webhook is
            asked, the call itself does so.

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
        write = self._write(target, "CREATE", (_placed(body, target), None))
        after = self._review(target, kind, write, dry_run=dry_run, admit=admit)
        return msgspec.structs.replace(request, body=msgspec.json.encode(after))

    def reviewed_body(
        self, target: Target, kind: ResourceType, objects: tuple[Obj, Obj], *, dry_run: bool
    ) -> Obj:
        """Return the changed body of a subresource as webhooks change it.

        Parameters
        ----------
        target
            The subresource.
        kind
            Type of the body.
        objects
            The body, and the body that a reader would have got.
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
        write = self._write(target, "UPDATE", (_placed(new, target), old))
        return self._review(target, kind, write, dry_run=dry_run)

    def review_connection(self, target: Target, request: Request) -> None:
        """Ask webhooks about a connection to a container; the object is its options.

        Raises
        ------
        StatusError
            As a webhook says; 400: the options cannot be read.
        AnswersNeeded
            A webhook has to answer first.

        Notes
        -----
        kubernetes v1.36 apiserver pkg/endpoints/handlers/rest.go, ConnectResource: webhooks are
        asked before the pod is looked at. What they change is without effect here, as nothing is
        connected.
        """
        if not any(self._webhooks.shelves) or request.method not in ("GET", "POST"):
            return
        kind, _ = subresource_body(target.served.kind.resource, target.subresource)
        options = _stream_options(request)
        options |= {"kind": kind.kind, "apiVersion": kind.api_version}
        write = self._write(target, "CONNECT", (options, None))
        self._review(target, kind, write, dry_run=False)

    def _write(self, target: Target, operation: str, objects: tuple[Obj, Obj | None]) -> Write:
        resource, namespace = target.served.kind.resource, target.namespace
        return Write(
            operation=operation,
            resource=resource,
            versions=served_versions(self._world, resource),
            subresource=target.subresource,
            new=objects[0],
            old=objects[1],
            namespace=self._world.lookup("namespaces", None, namespace) if namespace else None,
        )

    def _review(
        self,
        target: Target,
        kind: ResourceType,
        write: Write,
        *,
        dry_run: bool,
        admit: Admit = _as_sent,
    ) -> Obj:
        """Return the object of a write as admission changes it."""
        served, name = target.served, target.name
        step = self._webhooks.step(served, kind, name=name, dry_run=dry_run)
        chain = MutatingChain(
            admit=admit,
            client_steps=() if step is None else (step,),
            write_of=write.with_new,
            defaulted=lambda obj: obj,
        )
        write = write.with_new(chain.mutated(write.obj))
        self._webhooks.validate(served, kind, write, name=name, dry_run=dry_run)
        if (answers := current_answers()) is not None:
            answers.reviewed = True
        return write.obj


def _placed(body: Obj, target: Target) -> Obj:
    """Return a body with the namespace of the path."""
    return body | {"metadata": body["metadata"] | {"namespace": target.namespace}}


def _stream_options(request: Request) -> Obj:
    """Return the options in the parameters of a connection."""
    query = Query(request.query)
    options: Obj = {name: True for name in _STREAM_FLAGS if query.flag(name)}
    if container := query.text("container"):
        options["container"] = container
    if command := [value for name, value in request.query if name == "command"]:
        options["command"] = command
    if ports := [value for name, value in request.query if name == "ports"]:
        if not all(each.isdecimal() for each in ports):
            raise bad_request(f"ports {ports} cannot be read: they are numbers")
        options["ports"] = [int(each) for each in ports]
    return options
