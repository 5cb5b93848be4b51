"""The paths that are no resources: reviews, measurements, documents, and a sandbox's own calls.

Place in the flow: the last step of the chain asks here first, where a path addresses no built-in
resource. A custom resource may not hide a path of the server's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.kinds.kept import kept_kind
from moorage.kinds.status import method_not_allowed
from moorage_sandbox.apiserver.authentication.account_tokens import AccountTokens
from moorage_sandbox.apiserver.documents.discovery import Discovery
from moorage_sandbox.apiserver.documents.own_metrics import PATH as METRICS_PATH
from moorage_sandbox.apiserver.documents.own_metrics import OwnMetrics
from moorage_sandbox.apiserver.documents.tagged_documents import document_reply
from moorage_sandbox.apiserver.kubelet.metrics import METRICS, ResourceMetrics
from moorage_sandbox.apiserver.kubelet.proxies import refuse_proxy
from moorage_sandbox.apiserver.loading import SNAPSHOT_PATH, Loader
from moorage_sandbox.apiserver.rbac.reviews import REVIEWS, Reviews
from moorage_sandbox.apiserver.subresources.binding import BINDINGS
from moorage_sandbox.apiserver.time_control import TIME_PATH, time_answer
from moorage_sandbox.apiserver.wire.negotiate import JSON, negotiate
from moorage_sandbox.apiserver.wire.requests import Reply, Request, User
from moorage_sandbox.apiserver.world import World

if TYPE_CHECKING:
    from moorage.base.timeline import Timeline

# Kinds that are answered and never stored.
_NEVER_STORED = (*REVIEWS, BINDINGS)


class OwnPaths:
    """Answers calls to the server's own paths.

    Parameters
    ----------
    world
        Holds the objects.
    reviews
        Answers reviews.
    tokens
        Has the keys of service accounts' tokens.
    """

    def __init__(self, world: World, reviews: Reviews, tokens: AccountTokens) -> None:
        self._world = world
        self._reviews = reviews
        self._tokens = tokens
        self._loader = Loader(world)
        self._metrics = ResourceMetrics(world)
        self._own_metrics = OwnMetrics(world)
        never_stored = [kept_kind(each) for each in _NEVER_STORED]
        self._discovery = Discovery(world.catalog, world.git_version, never_stored, METRICS)
        self.timeline: Timeline | None = None

    def answer_call(self, request: Request, user: User) -> Reply | None:
        """Answer a call; None for a path that is not the server's own.

        Raises
        ------
        StatusError
            As each of them says.
        """
        if request.path == SNAPSHOT_PATH:
            return self._loader.load_piece(request)
        if request.path == TIME_PATH:
            return time_answer(self.timeline, request, user)
        review = self._reviews.answer_review(request, user)
        if review is not None:
            negotiate(request.headers.get("accept", ""), tables=False)
            return review
        return self._metrics.answer_metrics(request) or self._document(request)

    def _document(self, request: Request) -> Reply | None:
        """Answer a call for a document about the server; None for other paths."""
        if request.method == "GET":
            own = self._own_document(request.path)
            if own is not None:
                return own
        accept = request.headers.get("accept", "")
        document = self._discovery.document(request.path, accept)
        if document is None:
            refusal = refuse_proxy(self._world.store, request)
            if refusal is not None:
                raise refusal
            return None
        if request.method != "GET":
            raise method_not_allowed()
        if document.media_type == JSON:
            negotiate(accept)
        return document_reply(request, document)

    def _own_document(self, path: str) -> Reply | None:
        """Return the server's metrics, or its keys; None for other paths."""
        if path == METRICS_PATH:
            return self._own_metrics.reply()
        return self._tokens.keys.document(path)
