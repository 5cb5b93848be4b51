"""Reads a scheduler configuration: file or text in, checked and defaulted structs out.

First stop of the configuration; `merge` turns the result into profiles. Version v1 only, strict:
an unknown field, a key given twice and a wrong type are faults, and all faults are told at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from moorage.base.errors import ConfigError
from moorage.config.args import read_args
from moorage.config.defaults import with_defaults
from moorage.config.strict import Reader, parse_text
from moorage.config.types import API_VERSION, KIND, KubeSchedulerConfiguration, Profile
from moorage.config.validation import validate


def load_config(path: str | Path) -> KubeSchedulerConfiguration:
    """Read a configuration file, YAML or JSON.

    Raises
    ------
    ConfigError
        The file cannot be read or has faults; every fault is listed.
    """
    source = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError([f"cannot read the file: {reason}"], source=source) from error
    return parse_config(text, source=source)


def parse_config(text: str, *, source: str = "") -> KubeSchedulerConfiguration:
    """Read a configuration from text, YAML or JSON.

    Raises
    ------
    ConfigError
        Every fault found.
    """
    return config_from_values(parse_text(text, source=source), source=source)


def config_from_values(values: object, *, source: str = "") -> KubeSchedulerConfiguration:
    """Read a configuration from plain values, e.g. decoded JSON.

    Returns
    -------
    KubeSchedulerConfiguration
        With defaults filled in; arguments of in-tree plugins are structs of `plugin_args`.

    Raises
    ------
    ConfigError
        Every fault found, as Kubernetes field errors.
    """
    body = _checked_kind(values, source)
    reader = Reader()
    config = reader.read(KubeSchedulerConfiguration, body) or KubeSchedulerConfiguration()
    faults = reader.faults
    profiles = [
        _with_args(profile, f"profiles[{index}]", faults)
        for index, profile in enumerate(config.profiles)
    ]
    config = with_defaults(msgspec.structs.replace(config, profiles=profiles))
    faults += validate(config)
    if faults:
        raise ConfigError(faults, source=source)
    return config


def _checked_kind(values: object, source: str) -> Mapping[str, Any]:
    if not isinstance(values, Mapping):
        raise ConfigError(
            [f"expected an object with apiVersion {API_VERSION} and kind {KIND}"], source=source
        )
    version, kind = values.get("apiVersion"), values.get("kind")
    if version == API_VERSION and kind == KIND:
        return values
    if kind == KIND and str(version).startswith("kubescheduler.config.k8s.io/"):
        fault = f"no kind {KIND!r} is registered for version {version!r}: use {API_VERSION}"
    else:
        fault = (
            f"couldn't decode as {KIND}, got apiVersion {version!r} and kind {kind!r}: "
            f"expected {API_VERSION} and {KIND}"
        )
    raise ConfigError([fault], source=source)


def _with_args(profile: Profile, path: str, faults: list[str]) -> Profile:
    entries = [
        msgspec.structs.replace(
            entry,
            args=read_args(
                entry.name, entry.args, path=f"{path}.pluginConfig[{index}].args", faults=faults
            ),
        )
        for index, entry in enumerate(profile.plugin_config)
    ]
    return msgspec.structs.replace(profile, plugin_config=entries)
