"""The server's own metrics, on ``/metrics``, under the names of kube-apiserver.

Place in the flow: `server` answers the path here. Everything is read when it is asked for, so that
no call is slower for it: the objects of each kind, the priority levels, the process. Calls are not
counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from moorage_sandbox.apiserver.wire.fairness import CALLS_OF_USER_MAX
from moorage_sandbox.apiserver.wire.requests import Reply
from moorage_sandbox.apiserver.world import World

if TYPE_CHECKING:
    from prometheus_client.core import Metric

PATH: Final = "/metrics"


class OwnMetrics:
    """Collects the metrics of a server.

    Parameters
    ----------
    world
        Holds the objects.
    """

    def __init__(self, world: World) -> None:
        self._world = world

    def reply(self) -> Reply:
        """Return the answer to a call of the path."""
        # Imported by the first call: no other call needs the library.
        from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
        from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        ProcessCollector(registry=registry)
        body = generate_latest(registry)
        return Reply(status=200, body=body, content_type=CONTENT_TYPE_PLAIN_0_0_4)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the objects; called by the library."""
        from prometheus_client.core import GaugeMetricFamily

        build = GaugeMetricFamily(
            "kubernetes_build_info", "The version that is served", labels=("git_version",)
        )
        build.add_metric((self._world.git_version,), 1)
        yield build
        stored = GaugeMetricFamily(
            "apiserver_resource_objects", "Stored objects", labels=("group", "resource")
        )
        for served in self._world.catalog.shelves():
            resource = served.kind.resource
            count = len(self._world.store.shelf(served.shelf))
            stored.add_metric((resource.group, resource.plural), count)
        yield stored
        limits = GaugeMetricFamily(
            "apiserver_flowcontrol_request_concurrency_limit",
            "Calls under way that a user of a priority level may have",
            labels=("priority_level",),
        )
        for level in self._world.stored_objects("prioritylevelconfigurations"):
            limits.add_metric((level["metadata"]["name"],), CALLS_OF_USER_MAX)
        yield limits
