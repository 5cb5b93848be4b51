"""The plugin lists and arguments of one profile, from names of the past to today's.

Used by `versions` and `policy`. Rules: kubernetes v1.18 to v1.36 ``pkg/scheduler/apis/config`` and
``pkg/scheduler/framework/plugins/legacy_registry.go`` (v1.22).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from moorage.config.args import args_type
from moorage.config.convert.remarks import Remarks, objects
from moorage.config.past import PAST_ARGS, PAST_PLUGINS, STRATEGIES, is_past
from moorage.config.plugin_args import API_VERSION as ARGS_VERSION

FIT: Final = "NodeResourcesFit"
AFFINITY: Final = "NodeAffinity"
SPREAD: Final = "PodTopologySpread"
_DEFAULT_STRATEGY: Final = "NodeResourcesLeastAllocated"
_QUEUE_SORT: Final = "PrioritySort"
_RAISED_WEIGHTS: Final = ("InterPodAffinity", "NodeAffinity", "TaintToleration")
"""Plugins whose default weight was 1 before v1beta3."""
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class _Scored(NamedTuple):
    """A plugin of the past that became a strategy, as a file enabled it."""

    name: str
    weight: int | None
    path: str


class ProfileConversion:
    """Converts one profile.

    Parameters
    ----------
    path
        Where the profile was, as ``profiles[0]``; "" at the top of the file.
    remarks
        Told of everything that changes.
    """

    def __init__(self, path: str, remarks: Remarks) -> None:
        self._path = f"{path}." if path else ""
        self._remarks = remarks
        self._args: dict[str, dict[str, Any]] = {}
        self._strategy_args: dict[str, Mapping[str, Any]] = {}
        self._scored: list[_Scored] = []
        self._least_allocated = True
        """Whether the old file leaves its default scoring of resources on."""

    # -- plugin lists ------------------------------------------------------------------------------

    def plugins(self, lists: Mapping[str, Any]) -> dict[str, Any]:
        """Return the plugin lists by extension point, with today's names."""
        sets_by_point: dict[str, Any] = {}
        for point, plugin_set in lists.items():
            path = f"{self._path}plugins.{point}"
            if point == "unreserve":
                self._remarks.dropped(path, point, "Reserve plugins undo their own work")
            elif isinstance(plugin_set, Mapping):
                sets = self._plugin_set(point, plugin_set, path)
                if sets:
                    sets_by_point[point] = sets
            else:
                sets_by_point[point] = plugin_set
        self._complete_queue_sort(sets_by_point)
        self._score_by_strategy(sets_by_point)
        return sets_by_point

    def _plugin_set(self, point: str, plugin_set: Mapping[str, Any], path: str) -> dict[str, Any]:
        sets = {
            name: kept
            for name in ("enabled", "disabled")
            if (kept := self._references(point, name, plugin_set.get(name) or [], f"{path}.{name}"))
        }
        return {
            **sets,
            **{key: plugin_set[key] for key in plugin_set if key not in ("enabled", "disabled")},
        }

    def _references(self, point: str, list_name: str, references: Any, path: str) -> list[Any]:
        left = []
        for where, reference in objects(path, references, self._remarks):
            name = reference.get("name")
            if point == "score" and list_name == "disabled" and name in ("*", _DEFAULT_STRATEGY):
                self._least_allocated = False
            if name in STRATEGIES:
                if list_name == "enabled" and point in ("score", "multiPoint"):
                    self._scored.append(_Scored(str(name), reference.get("weight"), where))
            elif name in PAST_PLUGINS:
                self._remarks.dropped(where, str(name), PAST_PLUGINS[str(name)])
            else:
                left.append(reference)
        return left

    def _complete_queue_sort(self, lists: dict[str, Any]) -> None:
        """Disable the default queue sort plugin where a file enables another one."""
        sets = lists.get("queueSort")
        if not isinstance(sets, dict) or not sets.get("enabled") or sets.get("disabled"):
            return
        names = [each.get("name") for each in sets["enabled"]]
        if names != [_QUEUE_SORT]:
            lists["queueSort"] = {**sets, "disabled": [{"name": _QUEUE_SORT}]}
            path = f"{self._path}plugins.queueSort"
            self._remarks.changed(path, f"{_QUEUE_SORT} is disabled: a queue has one order")

    def _score_by_strategy(self, lists: dict[str, Any]) -> None:
        """Score by the strategy that took the place of the enabled plugins of the past."""
        if not self._scored:
            if not self._least_allocated:
                self._stop_scoring(lists)
            elif _DEFAULT_STRATEGY in self._strategy_args:
                self._strategy(_DEFAULT_STRATEGY)
            self._drop_unused_args()
            return
        chosen, *more = self._scored
        for each in more:
            why = f"{FIT} has one strategy, and {chosen.name} came first"
            self._remarks.dropped(each.path, each.name, why)
        if self._least_allocated and chosen.name != _DEFAULT_STRATEGY:
            why = f"{FIT} has one strategy, and {chosen.name} is enabled"
            self._remarks.dropped(f"{self._path}plugins.score", _DEFAULT_STRATEGY, why)
        self._strategy(chosen.name)
        self._drop_unused_args()
        text = f"{chosen.name} is the strategy {STRATEGIES[chosen.name]} of {FIT}"
        self._remarks.changed(chosen.path, text)
        enabled: dict[str, Any] = {"name": FIT}
        if chosen.weight:
            enabled["weight"] = chosen.weight
        score = dict(lists.get("score") or {})
        others = [each for each in score.get("enabled", ()) if each.get("name") != FIT]
        score["enabled"] = [*others, enabled]
        lists["score"] = score

    def _stop_scoring(self, lists: dict[str, Any]) -> None:
        score = dict(lists.get("score") or {})
        disabled = score.get("disabled", [])
        if {"name": "*"} not in disabled:
            score["disabled"] = [*disabled, {"name": FIT}]
            lists["score"] = score
            text = f"{_DEFAULT_STRATEGY} was disabled, so {FIT} does not score"
            self._remarks.changed(f"{self._path}plugins.score.disabled", text)

    def keep_weights(self, lists: dict[str, Any]) -> None:
        """Give the plugins whose default weight was raised by v1beta3 the weight they had."""
        score, multi = dict(lists.get("score") or {}), lists.get("multiPoint") or {}
        names = {
            each.get("name")
            for sets in (score, multi)
            for key in ("enabled", "disabled")
            for each in sets.get(key, ())
        }
        unweighted = [name for name in _RAISED_WEIGHTS if name not in names]
        if "*" in names or not unweighted:
            return
        weights = [{"name": name, "weight": 1} for name in unweighted]
        lists["score"] = {**score, "enabled": [*score.get("enabled", []), *weights]}
        text = f"{', '.join(unweighted)} keep the weight 1; later default weights are 2 and 3"
        self._remarks.changed(f"{self._path}plugins.score", text)

    # -- arguments ---------------------------------------------------------------------------------

    def arguments(self, entries: Any) -> None:
        """Take the arguments of plugins in; call it before `plugins`."""
        for path, entry in objects(f"{self._path}pluginConfig", entries or [], self._remarks):
            self._entry(entry, path)

    def _entry(self, entry: Mapping[str, Any], path: str) -> None:
        name, args = str(entry.get("name", "")), entry.get("args")
        args = dict(args) if isinstance(args, Mapping) else {}
        if args_type(name) is None and name not in PAST_PLUGINS:
            # The arguments of a plugin defined elsewhere keep their own kind.
            if is_past(args.get("apiVersion")):
                args["apiVersion"] = ARGS_VERSION
            self._args[name] = args
            return
        args.pop("apiVersion", None)
        args.pop("kind", None)
        if name in STRATEGIES:
            self._strategy_args[name] = args
        elif name == "NodeLabel":
            self.node_labels(args, f"{path}.args")
        elif name in PAST_PLUGINS:
            self._remarks.dropped(path, name, PAST_PLUGINS[name])
        else:
            self.add_args(name, self._without_past(args, f"{path}.args"))

    def _without_past(self, args: dict[str, Any], path: str) -> dict[str, Any]:
        for key in [key for key in args if key in PAST_ARGS]:
            self._remarks.dropped(f"{path}.{key}", args.pop(key), PAST_ARGS[key])
        return args

    def add_args(self, plugin: str, args: Mapping[str, Any]) -> None:
        """Add to the arguments of a plugin of today."""
        known = self._args.setdefault(plugin, {})
        known.update(args)
        if plugin == SPREAD and known.get("defaultConstraints"):
            known.setdefault("defaultingType", "List")

    def _drop_unused_args(self) -> None:
        for name in self._strategy_args:
            why = "the profile does not score by it"
            self._remarks.dropped(f"{self._path}pluginConfig", name, why)

    def _strategy(self, plugin: str) -> None:
        given = self._strategy_args.pop(plugin, {})
        args = {key.lower(): value for key, value in given.items()}
        written: dict[str, Any] = {"type": STRATEGIES[plugin]}
        weights = args.get("resourcetoweightmap")
        resources = args.get("resources") or (
            [{"name": name, "weight": weight} for name, weight in weights.items()]
            if isinstance(weights, Mapping)
            else None
        )
        if resources:
            written["resources"] = resources
        shape = args.get("shape") or args.get("functionshape")
        if shape:
            written["requestedToCapacityRatio"] = {"shape": shape}
        self.add_args(FIT, {"scoringStrategy": written})

    def strategy_args(self, plugin: str, args: Mapping[str, Any]) -> None:
        """Take in the arguments of a plugin that became a strategy."""
        self._strategy_args[plugin] = args

    def node_labels(self, args: Mapping[str, Any], path: str) -> None:
        """Take in the arguments of NodeLabel: labels that nodes must or should have, or lack."""
        required = _label_rules(args, "presentLabels", "absentLabels")
        preferred = _label_rules(args, "presentLabelsPreference", "absentLabelsPreference")
        if required:
            affinity = self._added_affinity()
            terms = affinity.setdefault(
                _REQUIRED, {"nodeSelectorTerms": [{"matchExpressions": []}]}
            )
            terms["nodeSelectorTerms"][0]["matchExpressions"] += required
        for rule in preferred:
            self.prefer_node_label(rule, weight=1)
        if required or preferred:
            self._remarks.changed(path, f"labels of nodes are addedAffinity of {AFFINITY}")

    def prefer_node_label(self, rule: Mapping[str, str], *, weight: int) -> None:
        """Prefer the nodes that fit a rule about a label."""
        wishes = self._added_affinity().setdefault(_PREFERRED, [])
        wishes.append({"weight": weight, "preference": {"matchExpressions": [dict(rule)]}})

    def _added_affinity(self) -> dict[str, Any]:
        args = self._args.setdefault(AFFINITY, {})
        affinity: dict[str, Any] = args.setdefault("addedAffinity", {})
        return affinity

    def plugin_config(self) -> list[dict[str, Any]]:
        """Return the arguments of every plugin that has some."""
        return [
            {"name": name, "args": {**_args_head(name), **args}}
            for name, args in self._args.items()
            if args
        ]


def _args_head(plugin: str) -> dict[str, str]:
    known = args_type(plugin) is not None
    return {"apiVersion": ARGS_VERSION, "kind": f"{plugin}Args"} if known else {}


def _label_rules(args: Mapping[str, Any], present: str, absent: str) -> list[dict[str, str]]:
    return [
        *({"key": label, "operator": "Exists"} for label in args.get(present) or ()),
        *({"key": label, "operator": "DoesNotExist"} for label in args.get(absent) or ()),
    ]
