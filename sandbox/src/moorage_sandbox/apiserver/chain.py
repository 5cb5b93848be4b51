"""The chain of steps that every call goes through, in upstream's order.

Place in the flow: `server` has chosen the lane of a call; here the call is answered, without
waiting. Mirrors kubernetes v1.36 apiserver pkg/server/config.go (DefaultBuildHandlerChain). Two of
upstream's steps stand around this chain: `server` writes the audit log, because it has the answer,
and `wire.fairness` limits the calls of a user before their bodies are read. Admission is a part of
the verbs, as upstream: `verbs` asks `admission` between decoding an object and storing it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from moorage.cel.evaluators import TooLongHere
from moorage.kinds.status import StatusError, bad_request, internal, unauthorized
from moorage_sandbox.apiserver.catalog import Routes, Target, resource_target
from moorage_sandbox.apiserver.documents.health import health
from moorage_sandbox.apiserver.documents.own_paths import OwnPaths
from moorage_sandbox.apiserver.kubelet.streams import STREAMS
from moorage_sandbox.apiserver.policies.denying import Policies
from moorage_sandbox.apiserver.protobuf.calls import (
    call_from_protobuf,
    kind_of_body,
    reply_in_protobuf,
)
from moorage_sandbox.apiserver.rbac.attributes import attributes_of
from moorage_sandbox.apiserver.rbac.authorizer import Authorizer
from moorage_sandbox.apiserver.rbac.escalation import Escalation
from moorage_sandbox.apiserver.rbac.impersonation import IMPERSONATE, acting_user
from moorage_sandbox.apiserver.rbac.reviews import reviewed_resource
from moorage_sandbox.apiserver.rbac.rules import Attributes
from moorage_sandbox.apiserver.resource_calls import ResourceCalls, kind_addressed
from moorage_sandbox.apiserver.subresources.binding import pod_target
from moorage_sandbox.apiserver.webhooks.answers import AnswersNeeded, current_answers
from moorage_sandbox.apiserver.wire.default_flows import DEFAULT_SCHEMAS
from moorage_sandbox.apiserver.wire.flow_schemas import FlowSchemas
from moorage_sandbox.apiserver.wire.negotiate import PROTOBUF, YAML, content_type
from moorage_sandbox.apiserver.wire.render import status_reply
from moorage_sandbox.apiserver.wire.requests import (
    Query,
    Reply,
    Request,
    User,
    authenticated,
    check_timeout,
)
from moorage_sandbox.apiserver.wire.yaml_calls import call_in_json, reply_in_yaml
from moorage_sandbox.apiserver.world import World
from moorage_sandbox.storage.reads import GoneError, StaleError

_log = logging.getLogger(__name__)

READS: Final = ("GET", "HEAD")
"""The methods that change nothing."""


def may_be_admitted(request: Request) -> bool:
    """Whether admission is asked about a call: a write, or a connection to a container."""
    return request.method not in READS or request.path.rpartition("/")[2] in STREAMS


class Call:
    """One call on its way through the chain, with what the steps find out about it.

    ``user`` is set by authentication, and again by impersonation; ``attributes`` by authorization
    where rights are enforced, and ``target`` by routing: None where the path addresses no served
    resource.
    """

    __slots__ = ("attributes", "request", "target", "user")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.user: User = _NOBODY
        self.attributes: Attributes | None = None
        self.target: Target | None = None


_RESOURCES: Final = ("/api/", "/apis/")
_NOBODY: Final = User("", ())

Step = Callable[[Call], Reply | None]
"""A step of the chain. A reply ends the chain, and so does a `StatusError`."""


class Rights(NamedTuple):
    """Who decides about the rights of callers.

    Parameters
    ----------
    authorizer
        Decides about calls.
    escalation
        Decides about writes that grant rights.
    """

    authorizer: Authorizer
    escalation: Escalation


class CallChain:
    """Answers calls, step by step.

    Parameters
    ----------
    world
        Holds the objects, and the user of the current call.
    routes
        Find the target of a path.
    own_paths
        Answers the paths that are no resources.
    resources
        Answers the paths of resources.
    policies
        Notes what admission policies say besides a refusal.
    rights
        The rights of callers.
    enforced
        Whether rights hold; otherwise every known user may do everything.
    """

    def __init__(
        self,
        world: World,
        routes: Routes,
        *,
        own_paths: OwnPaths,
        resources: ResourceCalls,
        policies: Policies,
        rights: Rights,
        enforced: bool,
    ) -> None:
        self._world = world
        self._routes = routes
        self._own_paths = own_paths
        self._resources = resources
        self._policies = policies
        self._rights = rights
        self._flow_schemas = FlowSchemas(world)
        self.enforced = enforced
        # Outermost first. A caller learns of an unknown user (401) and of missing rights (403)
        # before anything about its path (404), and of these before anything about its body.
        self._steps: tuple[Step, ...] = (
            self._check_deadline,
            self._authenticate,
            self._impersonate,
            self._authorize,
            self._route,
            self._negotiate,
            self._execute,
        )

    def answer(self, request: Request) -> Reply:
        """Take a call through the chain, and return the reply in the form that its client likes.

        Raises
        ------
        AnswersNeeded, TooLongHere, StaleError, GoneError
            The call has to be answered once more, or nobody waits for it.
        """
        notes = self._policies.notes
        noted = may_be_admitted(request) and any(notes.sources)
        if (answers := current_answers()) is not None:
            answers.restart()
        if noted:
            notes.clear()
        reply = self._reply_or_refusal(Call(request))
        if noted:
            reply = notes.added_to(reply)
        if len(self._flow_schemas.stored) > DEFAULT_SCHEMAS:
            headers = reply.headers + self._flow_schemas.headers(request)
            reply = msgspec.structs.replace(reply, headers=headers)
        accept = request.headers.get("accept", "")
        if PROTOBUF in accept:
            reply = reply_in_protobuf(request, reply)
        return reply_in_yaml(request, reply) if YAML in accept else reply

    def _reply_or_refusal(self, call: Call) -> Reply:
        """Return the reply of the first step that has one; a refusal is a reply, too."""
        request = call.request
        try:
            for step in self._steps:
                reply = step(call)
                if reply is not None:
                    return reply
        except StatusError as error:
            return status_reply(error)
        except RecursionError:
            return status_reply(bad_request("the object is nested too deeply"))
        except (AnswersNeeded, TooLongHere, StaleError, GoneError):
            raise
        except Exception as error:
            _log.exception("%s %s failed", request.method, request.path)
            return status_reply(internal(f"{type(error).__name__}: {error}"))
        raise AssertionError("the last step answers")

    def _check_deadline(self, call: Call) -> None:
        """400: the time limit of the call is no duration."""
        if call.request.query:
            check_timeout(call.request.query)

    def _authenticate(self, call: Call) -> Reply | None:
        """401: the transport has found no user. Health paths answer strangers, too."""
        request = call.request
        if not request.path.startswith(_RESOURCES):
            text = health(request.path, Query(request.query))
            if text is not None:
                return Reply(status=200, body=text, content_type="text/plain; charset=utf-8")
        if request.user is None:
            raise unauthorized()
        call.user = authenticated(request.user)
        return None

    def _impersonate(self, call: Call) -> None:
        """403: the caller may not act as the user that it names."""
        if any(header.startswith(IMPERSONATE) for header in call.request.headers):
            authorizer = self._rights.authorizer if self.enforced else None
            call.user = acting_user(call.user, call.request.headers, authorizer)

    def _authorize(self, call: Call) -> None:
        """403: the user may not make the call."""
        if self.enforced:
            call.attributes = attributes_of(call.request)
            self._rights.authorizer.require_right(call.user, call.attributes)

    def _route(self, call: Call) -> None:
        """Find the target; a path without one may be a path of the server's own."""
        call.target = self._routes.find(call.request.path)

    def _negotiate(self, call: Call) -> None:
        """400, 413, 415: the body could not be read, or is not what its media type says.

        From here on the body is JSON. Nothing about it is said to a caller without rights.
        """
        request = call.request
        if request.fault is not None:
            raise request.fault
        if request.body and request.method != "PATCH":
            # Patches have media types of their own.
            media_type = content_type(request.headers.get("content-type", ""))
            if media_type == YAML:
                call.request = call_in_json(request)
            elif media_type == PROTOBUF:
                call.request = call_from_protobuf(request, self._kind_of_body(request))

    def _execute(self, call: Call) -> Reply:
        """Answer the call: a path of the server's own, or a resource."""
        self._world.caller = call.user
        if call.attributes is None:
            return self._reply_of_target(call)
        # The writes of the call need the rights of its user.
        with self._rights.escalation.called_by(call.user, call.attributes):
            return self._reply_of_target(call)

    def _reply_of_target(self, call: Call) -> Reply:
        request, target = call.request, call.target
        if target is None or target.served.custom:
            reply = self._own_paths.answer_call(request, call.user)
            if reply is not None:
                return reply
        if target is None:
            target = pod_target(request, self._world.catalog)
        if target is None:
            target = resource_target(request.path, self._world.catalog)
        return self._resources.answer_call(request, target)

    def _kind_of_body(self, request: Request) -> tuple[str, str]:
        """Return (API version, kind) of the body that a call should have.

        Raises
        ------
        StatusError
            404: the path has no target.
        """
        review = reviewed_resource(request.path)
        if review is not None:
            return review.api_version, review.kind
        target = resource_target(request.path, self._world.catalog)
        return kind_of_body(request.method, kind_addressed(target))
