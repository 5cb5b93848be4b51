"""The configurations that are compared, as texts that any process can read.

Place in the flow: `scenario` and `inputs` to here to `run`. A grid multiplies configurations: each
is tried with every combination of the values.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from moorage.api.codec import encode
from moorage.api.yaml_text import write_yaml
from moorage.base.clock import ManualClock
from moorage.base.errors import ConfigError
from moorage.base.rng import Streams
from moorage.config.load import file_text, parse_config
from moorage.config.own import emulating
from moorage.config.strict import parse_documents
from moorage.config.types import API_VERSION, KIND
from moorage.plugins.from_outside import WithPlugins, with_plugins
from moorage.service.core import build_core
from moorage_lab.traces.gpu_policies import policy_document
from moorage_lab.traces.inputs import Inputs
from moorage_lab.traces.scenario import Configuration, Scenario

_WEIGHTS: Final = "weights"


class Variant(msgspec.Struct, frozen=True):
    """A configuration of a run.

    Parameters
    ----------
    name
        Its name in tables.
    text
        The scheduler's configuration.
    plugins
        Plugins from outside.
    arguments
        The values of the grid, by their path.
    version, oldest
        The emulated and the minimal compatibility version; "" for those of the text.
    """

    name: str
    text: str
    plugins: list[str]
    arguments: dict[str, Any] = {}
    version: str = ""
    oldest: str = ""

    def load(self) -> WithPlugins:
        """Read the configuration, and load its plugins.

        Raises
        ------
        ConfigError
            The configuration has faults.
        UsageError
            A plugin cannot be loaded.
        """
        config = parse_config(self.text, source=f"configuration {self.name}")
        config = emulating(config, version=self.version, oldest=self.oldest)
        return with_plugins(config, self.plugins)


def variants_of(scenario: Scenario, inputs: Callable[[], Inputs]) -> list[Variant]:
    """Return the configurations of a scenario, each checked.

    Parameters
    ----------
    scenario
        The scenario.
    inputs
        Reads the inputs; called where a configuration is made from the pods that come.

    Raises
    ------
    ConfigError
        A configuration has faults.
    UsageError
        A plugin cannot be loaded.
    """
    configurations = scenario.configurations or [Configuration(name="default")]
    paths = list(scenario.grid)
    variants = []
    for configuration in configurations:
        for values in itertools.product(*scenario.grid.values()):
            chosen = dict(zip(paths, values, strict=True))
            variants.append(_variant(configuration, chosen, inputs))
    versions = scenario.emulated_version, scenario.min_compatibility_version
    variants = [
        msgspec.structs.replace(v, version=versions[0], oldest=versions[1]) for v in variants
    ]
    for each in variants:
        loaded = each.load()
        build_core(loaded.config, loaded.registry, clock=ManualClock(), streams=Streams(0))
    return variants


def _variant(
    configuration: Configuration, chosen: Mapping[str, Any], inputs: Callable[[], Inputs]
) -> Variant:
    arguments = {plugin: dict(args) for plugin, args in configuration.arguments.items()}
    weights = dict(configuration.weights)
    for path, value in chosen.items():
        plugin, _, field = path.partition(".")
        if plugin == _WEIGHTS:
            weights[field] = value
        else:
            _put(arguments.setdefault(plugin, {}), field.split("."), value)
    name = configuration.name
    if chosen:
        changes = ", ".join(f"{path}={_value_text(value)}" for path, value in chosen.items())
        name = f"{name} {changes}"
    text = _changed_text(_text(configuration, inputs), configuration.file, arguments, weights)
    return Variant(name, text, configuration.plugins, dict(chosen))


def _put(into: dict[str, Any], path: list[str], value: Any) -> None:
    *parents, last = path
    for parent in parents:
        inner = into.get(parent)
        into[parent] = into = dict(inner) if isinstance(inner, dict) else {}
    into[last] = value


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) else encode(value).decode()


def _text(configuration: Configuration, inputs: Callable[[], Inputs]) -> str:
    """Return the text of a configuration as it is named: of a file, a policy, or the default."""
    if configuration.file:
        return file_text(configuration.file)
    if configuration.gpu_policy:
        return write_yaml(policy_document(configuration.gpu_policy, inputs()))
    return write_yaml({"apiVersion": API_VERSION, "kind": KIND})


def _changed_text(
    text: str,
    source: str,
    arguments: Mapping[str, Mapping[str, Any]],
    weights: Mapping[str, int],
) -> str:
    """Return the text of a configuration with arguments and weights put into every profile."""
    if not arguments and not weights:
        return text
    documents = parse_documents(text, source=source)
    parts = []
    for document in documents:
        if not isinstance(document, dict) or document.get("kind") != KIND:
            parts.append(document)
            continue
        profiles = document.get("profiles") or [{"schedulerName": "default-scheduler"}]
        if not isinstance(profiles, list) or not all(isinstance(p, dict) for p in profiles):
            raise ConfigError(["profiles: expected a list of objects"], source=source)
        changed = [_changed(profile, arguments, weights) for profile in profiles]
        parts.append({**document, "profiles": changed})
    return "---\n".join(write_yaml(each) for each in parts)


def _changed(
    profile: Mapping[str, Any],
    arguments: Mapping[str, Mapping[str, Any]],
    weights: Mapping[str, int],
) -> dict[str, Any]:
    changed = dict(profile)
    entries = {each.get("name"): dict(each) for each in profile.get("pluginConfig") or []}
    for plugin, args in arguments.items():
        entry = entries.setdefault(plugin, {"name": plugin})
        entry["args"] = {**(entry.get("args") or {}), **args}
    if entries:
        changed["pluginConfig"] = list(entries.values())
    if weights:
        plugins = dict(profile.get("plugins") or {})
        score = dict(plugins.get("score") or {})
        enabled = [each for each in score.get("enabled") or [] if each.get("name") not in weights]
        enabled += [{"name": name, "weight": each} for name, each in weights.items() if each]
        disabled = [*(score.get("disabled") or []), *({"name": name} for name in weights)]
        plugins["score"] = {**score, "enabled": enabled, "disabled": disabled}
        changed["plugins"] = plugins
    return changed
