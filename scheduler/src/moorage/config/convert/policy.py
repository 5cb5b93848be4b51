"""Policy files and algorithm providers of Kubernetes up to 1.22, as profiles.

Source: kubernetes v1.22 ``pkg/scheduler/framework/plugins/legacy_registry.go`` and
``pkg/scheduler/apis/config/legacy_types.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from moorage.base.errors import ConfigError
from moorage.config.convert.profile import AFFINITY, FIT, ProfileConversion
from moorage.config.convert.remarks import Remarks, objects
from moorage.config.past import PAST_PLUGINS, PREDICATES, PRIORITIES, STRATEGIES
from moorage.config.types import API_VERSION, KIND

_MANDATORY: Final = ("NodeUnschedulable", "TaintToleration")
"""Filters that a Policy file could not leave out."""
_BY_PREDICATE: Final = tuple(
    dict.fromkeys((*_MANDATORY, *(plugin for plugins in PREDICATES.values() for plugin in plugins)))
)
"""Every plugin that a predicate stands for."""
_SCORERS: Final = (
    "ImageLocality",
    "InterPodAffinity",
    "NodeAffinity",
    "NodeResourcesBalancedAllocation",
    FIT,
    "PodTopologySpread",
    "TaintToleration",
)
"""Plugins that score by default and that a priority stands for."""
_SPREAD: Final = "PodTopologySpread"
_PROVIDERS: Final = ("DefaultProvider", "ClusterAutoscalerProvider")
_NS_PER_MS: Final = 1_000_000
_CUSTOM: Final = "argument"


class _Chosen(NamedTuple):
    """The plugins that a Policy file chooses."""

    filters: tuple[str, ...] | None
    """None: the file has no predicates, so the defaults stay."""
    weights: dict[str, int] | None
    """By plugin that scores; None: the file has no priorities, so the defaults stay."""


def provider_plugins(name: str) -> dict[str, Any]:
    """Return the plugin lists of an algorithm provider, with the names of v1beta1.

    Raises
    ------
    ConfigError
        There was no such provider.
    """
    if name not in _PROVIDERS:
        known = " and ".join(_PROVIDERS)
        raise ConfigError([f"no algorithm provider {name!r}: kube-scheduler had {known}"])
    if name == "DefaultProvider":
        return {}
    return {
        "score": {
            "enabled": [{"name": "NodeResourcesMostAllocated", "weight": 1}],
            "disabled": [{"name": "NodeResourcesLeastAllocated"}],
        }
    }


def convert_policy(body: Mapping[str, Any], remarks: Remarks) -> dict[str, Any]:
    """Return a Policy file as a v1 configuration with one profile.

    Parameters
    ----------
    body
        Plain values of kind ``Policy``.
    remarks
        Told of everything that was dropped or changed.
    """
    conversion = ProfileConversion("", remarks)
    weight = body.get("hardPodAffinitySymmetricWeight")
    if weight is not None:
        conversion.add_args("InterPodAffinity", {"hardPodAffinityWeight": weight})
    if body.get("alwaysCheckAllPredicates"):
        why = "filters stop at the first rejection of a node, and messages count every node"
        remarks.dropped("alwaysCheckAllPredicates", True, why)
    chosen = _Chosen(
        _filters(body.get("predicates"), conversion, remarks),
        _weights(body.get("priorities"), conversion, remarks),
    )
    plugins = conversion.plugins(_strategies(chosen.weights))
    if chosen.weights is None:
        conversion.keep_weights(plugins)
    _leave_out(plugins, chosen)
    profile: dict[str, Any] = {}
    if plugins:
        profile["plugins"] = plugins
    if config := conversion.plugin_config():
        profile["pluginConfig"] = config
    converted: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND}
    if profile:
        converted["profiles"] = [profile]
    if extenders := body.get("extenders") or body.get("extenderConfigs"):
        told = objects("extenders", extenders, remarks)
        converted["extenders"] = [_extender(each, path, remarks) for path, each in told]
    return converted


def _filters(
    predicates: Any, conversion: ProfileConversion, remarks: Remarks
) -> tuple[str, ...] | None:
    if not isinstance(predicates, list):
        return None
    filters = dict.fromkeys(_MANDATORY)
    for path, predicate in objects("predicates", predicates, remarks):
        name = str(predicate.get("name", ""))
        custom = _argument(predicate)
        labels = custom.get("labelsPresence")
        if labels:
            kind = "presentLabels" if labels.get("presence") else "absentLabels"
            conversion.node_labels({kind: labels.get("labels")}, path)
            filters[AFFINITY] = None
        elif "serviceAffinity" in custom or name == "CheckServiceAffinity":
            remarks.dropped(path, name, PAST_PLUGINS["ServiceAffinity"])
        elif name in PREDICATES:
            filters.update(dict.fromkeys(PREDICATES[name]))
        else:
            remarks.dropped(path, name, "no predicate of this name is known")
    return tuple(filters)


def _weights(
    priorities: Any, conversion: ProfileConversion, remarks: Remarks
) -> dict[str, int] | None:
    if not isinstance(priorities, list):
        return None
    weights: dict[str, int] = {}
    for path, priority in objects("priorities", priorities, remarks):
        name, weight = str(priority.get("name", "")), priority.get("weight")
        weight, custom = weight if isinstance(weight, int) else 1, _argument(priority)
        plugin = PRIORITIES.get(name, "")
        if ratio := custom.get("requestedToCapacityRatioArguments"):
            plugin = "RequestedToCapacityRatio"
            conversion.strategy_args(plugin, ratio)
        if label := custom.get("labelPreference"):
            _prefer(label, weight, conversion)
            plugin = AFFINITY
            remarks.changed(path, f"the label is preferred by addedAffinity of {AFFINITY}")
            weight = weights.get(AFFINITY, 1)
        elif "serviceAntiAffinity" in custom:
            why = f"use defaultConstraints in the args of {_SPREAD}"
            remarks.dropped(path, name, why)
            continue
        elif plugin == "SelectorSpread":
            remarks.changed(path, f"{_SPREAD} has its part, by its defaultingType System")
            plugin = _SPREAD
        elif plugin not in STRATEGIES and plugin in PAST_PLUGINS:
            remarks.dropped(path, name, PAST_PLUGINS[plugin])
            continue
        elif not plugin:
            known = name == "EqualPriority"
            why = "every node gets the same score" if known else "no priority of this name is known"
            remarks.dropped(path, name, why)
            continue
        weights[plugin] = max(weight, weights.get(plugin, 0))
    return weights


def _argument(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the argument of a predicate or priority: one object below one name."""
    given = entry.get(_CUSTOM)
    if not isinstance(given, Mapping):
        return {}
    return {name: value for name, value in given.items() if isinstance(value, Mapping)}


def _prefer(label: Mapping[str, Any], weight: int, conversion: ProfileConversion) -> None:
    operator = "Exists" if label.get("presence") else "DoesNotExist"
    rule = {"key": str(label.get("label", "")), "operator": operator}
    conversion.prefer_node_label(rule, weight=min(weight, 100))


def _strategies(weights: dict[str, int] | None) -> dict[str, Any]:
    """Return the score lists with the names of v1beta1, of the priorities a file has."""
    if weights is None:
        return {}
    enabled = [{"name": name, "weight": weight} for name, weight in weights.items()]
    left_out = [name for name in _SCORERS if name not in weights and name != FIT]
    disabled = [{"name": name} for name in [*left_out, "NodeResourcesLeastAllocated"]]
    return {"score": {"enabled": enabled, "disabled": disabled}}


def _leave_out(plugins: dict[str, Any], chosen: _Chosen) -> None:
    """Disable the default plugins whose predicates a file does not name."""
    if chosen.filters is None:
        return
    scorers = {each["name"] for each in plugins.get("score", {}).get("enabled", ())}
    if chosen.weights is None:
        scorers = set(_SCORERS)
    for name in _BY_PREDICATE:
        if name in chosen.filters:
            continue
        points = ("preFilter", "filter") if name in scorers else ("multiPoint",)
        for point in points:
            if point == "preFilter" and name in _NO_PRE_FILTER:
                continue
            plugins.setdefault(point, {}).setdefault("disabled", []).append({"name": name})


_NO_PRE_FILTER: Final = frozenset({"NodeUnschedulable", "TaintToleration", "NodeName"})


def _extender(written: Mapping[str, Any], path: str, remarks: Remarks) -> dict[str, Any]:
    extender = {_CASES.get(key, key): value for key, value in written.items() if value is not None}
    timeout = extender.get("httpTimeout")
    if isinstance(timeout, int):
        extender["httpTimeout"] = f"{timeout // _NS_PER_MS}ms"
        remarks.changed(f"{path}.httpTimeout", "nanoseconds became a duration with its unit")
    tls = extender.get("tlsConfig")
    if isinstance(tls, Mapping):
        extender["tlsConfig"] = {key[:1].lower() + key[1:]: value for key, value in tls.items()}
    return extender


_CASES: Final = {"enableHttps": "enableHTTPS"}
