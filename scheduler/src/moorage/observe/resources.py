"""``/metrics/resources``: the requests and limits of each pod, as kube-scheduler reports them.

Notes
-----
kubernetes v1.36 pkg/scheduler/metrics/resources: pods that have a node and are over are left out,
and so are quantities of 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder

from moorage.api.pod import Container, Pod
from moorage.api.quantity import NANO, parse_quantity
from moorage.api.requests import pod_requests

LABELS: Final = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")

_OVER: Final = frozenset({"Succeeded", "Failed"})
_BYTES: Final = frozenset({"memory", "storage", "ephemeral-storage"})


def resources_page(pods: Iterable[Pod], accept: str) -> tuple[bytes, str]:
    """Return the page about these pods, and its content type.

    Parameters
    ----------
    pods
        Every pod the scheduler knows.
    accept
        The media types the reader takes, as in HTTP.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Pods(sorted(pods, key=lambda pod: pod.key)))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Pods:
    """Collects once from a list of pods."""

    def __init__(self, pods: Sequence[Pod]) -> None:
        self._pods = pods

    def describe(self) -> Iterator[GaugeMetricFamily]:
        yield from ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        request = GaugeMetricFamily(
            "kube_pod_resource_request", "What a pod requests in total", labels=LABELS
        )
        limit = GaugeMetricFamily(
            "kube_pod_resource_limit", "What a pod is limited to in total", labels=LABELS
        )
        for pod in self._pods:
            if pod.spec.node_name and pod.status.phase in _OVER:
                continue
            _add(request, pod, pod_requests(pod, use_status=False, pod_level=True))
            _add(limit, pod, limits(pod))
        yield request
        yield limit


def limits(pod: Pod) -> dict[str, int]:
    """Return a pod's total limits by resource name, in nano units.

    Notes
    -----
    The rules of requests, applied to limits; overhead counts only for resources with a limit.
    """
    spec = pod.spec
    whole = spec.resources
    limited = msgspec.structs.replace(
        spec,
        containers=[_limits_as_requests(each) for each in spec.containers],
        init_containers=[_limits_as_requests(each) for each in spec.init_containers],
        resources=None if whole is None else msgspec.structs.replace(whole, requests=whole.limits),
        overhead={},
    )
    total = pod_requests(
        msgspec.structs.replace(pod, spec=limited), use_status=False, pod_level=True
    )
    for name, quantity in spec.overhead.items():
        if total.get(name):
            total[name] += parse_quantity(quantity)
    return total


def _limits_as_requests(container: Container) -> Container:
    resources = container.resources
    return msgspec.structs.replace(
        container, resources=msgspec.structs.replace(resources, requests=resources.limits)
    )


def _add(family: GaugeMetricFamily, pod: Pod, amounts: Mapping[str, int]) -> None:
    spec = pod.spec
    priority = "" if spec.priority is None else str(spec.priority)
    namespace, name = pod.key
    for resource, nano in sorted(amounts.items()):
        if nano:
            labels = (
                namespace,
                name,
                spec.node_name,
                spec.scheduler_name,
                priority,
                resource,
                _unit(resource),
            )
            family.add_metric(labels, nano / NANO)


def _unit(resource: str) -> str:
    if resource == "cpu":
        return "cores"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return "bytes"
    return "integer" if resource.startswith("attachable-volumes-") else ""
