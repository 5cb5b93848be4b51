"""Arguments of TargetLoadPacking and LoadVariationRiskBalancing; `args` uses this module.

Mirrors scheduler-plugins v0.35 ``apis/config/v1`` (types.go, defaults.go) and the checks of
``pkg/trimaran/collector.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import msgspec

from moorage.api.meta import ResourceList
from moorage.api.quantity import parse_quantity
from moorage.config.plugin_args import Args, ArgsKind
from moorage.config.strict import invalid, unsupported

METRICS_SERVER: Final = "KubernetesMetricsServer"
PROMETHEUS: Final = "Prometheus"

_PROVIDERS: Final = (METRICS_SERVER, PROMETHEUS)
_PROMETHEUS_ADDRESS: Final = "http://prometheus-k8s:9090"
_TARGET_PERCENT: Final = 40
_HUNDRED: Final = 100


class MetricProvider(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """Where the scheduler itself reads the metrics of nodes."""

    type: str = ""
    """KubernetesMetricsServer: the API metrics.k8s.io; Prometheus."""
    address: str = ""
    """URL of Prometheus; empty means http://prometheus-k8s:9090."""
    token: str = ""
    """Bearer token for Prometheus."""
    insecure_skip_verify: bool = True
    """Whether the certificate of Prometheus is not checked."""


class LoadSource(msgspec.Struct, frozen=True, kw_only=True):
    """A source of metrics, as two plugins with the same one share it."""

    watcher_address: str = ""
    provider: MetricProvider = MetricProvider(type=METRICS_SERVER)


class TrimaranArgs(Args, frozen=True, kw_only=True):
    """The source of metrics."""

    metric_provider: MetricProvider = MetricProvider()
    """The source, where no load-watcher is named; KubernetesMetricsServer by default."""
    watcher_address: str = ""
    """URL of a load-watcher service, which is asked instead."""

    @property
    def source(self) -> LoadSource:
        """The source that the arguments name."""
        if self.watcher_address:
            return LoadSource(watcher_address=self.watcher_address, provider=MetricProvider())
        return LoadSource(provider=self.metric_provider)


class TargetLoadPackingArgs(TrimaranArgs, frozen=True, kw_only=True):
    """The load that nodes are filled up to, and what pods are taken to use."""

    default_requests: ResourceList = msgspec.field(default_factory=lambda: {"cpu": "1000m"})
    """The cpu that a container without request and limit is taken to use."""
    default_requests_multiplier: str = "1.5"
    """A container without a limit is taken to use its request times this number."""
    target_utilization: int = _TARGET_PERCENT
    """Percent of a node's cpu, 1 to 99; 0 and less mean 40. Set it 10 below what is wanted."""


class LoadVariationRiskBalancingArgs(TrimaranArgs, frozen=True, kw_only=True):
    """How much the variation of a load counts next to the load."""

    safe_variance_margin: float = 1.0
    """The standard deviation counts so many times; less than 0 means 1."""
    safe_variance_sensitivity: float = 1.0
    """The root of the standard deviation that counts: 1 itself, 2 the square root; less than 0
    means 1."""


def with_trimaran_defaults(args: Args) -> Args:
    """Return arguments with what a file may leave open filled in."""
    if not isinstance(args, TrimaranArgs):
        return args
    provider = args.metric_provider
    if not provider.type and not args.watcher_address:
        provider = msgspec.structs.replace(provider, type=METRICS_SERVER)
    if provider.type == PROMETHEUS and not provider.address:
        provider = msgspec.structs.replace(provider, address=_PROMETHEUS_ADDRESS)
    args = msgspec.structs.replace(args, metric_provider=provider)
    if isinstance(args, TargetLoadPackingArgs) and args.target_utilization <= 0:
        return msgspec.structs.replace(args, target_utilization=_TARGET_PERCENT)
    if isinstance(args, LoadVariationRiskBalancingArgs):
        margin, root = args.safe_variance_margin, args.safe_variance_sensitivity
        return msgspec.structs.replace(
            args,
            safe_variance_margin=margin if margin >= 0 else 1.0,
            safe_variance_sensitivity=root if root >= 0 else 1.0,
        )
    return args


def validate_trimaran_args(args: TrimaranArgs, path: str) -> list[str]:
    """Return the faults of the source as field errors."""
    at = f"{path}." if path else ""
    provider, faults = args.metric_provider, []
    if not args.watcher_address and provider.type not in _PROVIDERS:
        fault = unsupported(f"{at}metricProvider.type", provider.type, _PROVIDERS)
        faults.append(f"{fault}; for another source run a load-watcher and set watcherAddress")
    for field, url in (
        ("watcherAddress", args.watcher_address),
        ("metricProvider.address", provider.address),
    ):
        if url and not _is_url(url):
            faults.append(invalid(f"{at}{field}", url, "must be a URL, http:// or https://"))
    return faults


def validate_target_load_packing_args(args: TargetLoadPackingArgs, path: str) -> list[str]:
    """Return the faults of the arguments as field errors."""
    at = f"{path}." if path else ""
    faults = validate_trimaran_args(args, path)
    multiplier = args.default_requests_multiplier
    try:
        float(multiplier)
    except ValueError:
        faults.append(invalid(f"{at}defaultRequestsMultiplier", multiplier, "must be a number"))
    if not 0 < args.target_utilization < _HUNDRED:
        rule = "must be between 1 and 99"
        faults.append(invalid(f"{at}targetUtilization", args.target_utilization, rule))
    for name, amount in args.default_requests.items():
        try:
            parse_quantity(amount)
        except ValueError as problem:
            faults.append(invalid(f"{at}defaultRequests[{name}]", amount, str(problem)))
    return faults


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


TRIMARAN_ARGS_KINDS: Final[Mapping[str, ArgsKind]] = {
    "TargetLoadPacking": ArgsKind(TargetLoadPackingArgs, validate_target_load_packing_args),
    "LoadVariationRiskBalancing": ArgsKind(LoadVariationRiskBalancingArgs, validate_trimaran_args),
}
"""By plugin name."""
