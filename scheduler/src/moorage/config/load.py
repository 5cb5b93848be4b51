"""Reads a scheduler configuration: file or text in, checked and defaulted structs out.

First stop of the configuration; `merge` turns the result into profiles. A file holds one or two
documents, in any order: Kubernetes' ``KubeSchedulerConfiguration`` and moorage's own
``MoorageConfiguration``; a missing document means its defaults. Strict: an unknown field, a key
given twice and a wrong type are faults, and all faults of both documents are listed together.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from moorage.api.manifest_text import utf8
from moorage.base.errors import ConfigError, DecodeError
from moorage.base.files import read_file
from moorage.config.args import read_args
from moorage.config.defaults import default_config, with_defaults
from moorage.config.own import (
    OWN_API_VERSION,
    OWN_KIND,
    LoadedConfiguration,
    MoorageConfiguration,
    emulating,
    own_faults,
)
from moorage.config.past import POLICY, changes_since, is_past, with_advice
from moorage.config.strict import Reader, parse_documents
from moorage.config.types import API_VERSION, KIND, KubeSchedulerConfiguration, Profile
from moorage.config.validation import validate

_LISTED_MAX: Final = 100
"""Most profiles, and most extenders: each profile takes 10 ms of the scheduler at a reload."""
_VERSIONS = {KIND: API_VERSION, OWN_KIND: OWN_API_VERSION}


class Reading(NamedTuple):
    """A configuration as far as it could be read, and its faults.

    Parameters
    ----------
    config
        The configuration; a field at fault has its default.
    faults
        Every fault, as Kubernetes field errors.
    """

    config: LoadedConfiguration
    faults: list[str]


def load_config(path: str | Path | None) -> LoadedConfiguration:
    """Read a configuration file, YAML or JSON.

    Parameters
    ----------
    path
        The file; None for the defaults.

    Raises
    ------
    ConfigError
        The file cannot be read or has faults; every fault is listed.
    """
    if path is None:
        return LoadedConfiguration()
    return parse_config(file_text(path), source=str(path))


def file_text(path: str | Path) -> str:
    """Return the text of a configuration file.

    Raises
    ------
    ConfigError
        The file cannot be read.
    """
    try:
        return utf8(read_file(Path(path))).decode()
    except (OSError, UnicodeDecodeError, DecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError([f"cannot read the file: {reason}"], source=str(path)) from error


def parse_config(text: str, *, source: str = "") -> LoadedConfiguration:
    """Read a configuration from text, YAML or JSON.

    Raises
    ------
    ConfigError
        Every fault found; faults of moorage's own document begin with its kind.
    """
    config, faults = read_config(text, source=source)
    if faults:
        raise ConfigError(faults, source=source)
    return config


def read_config(text: str, *, source: str = "") -> Reading:
    """Read a configuration from text as far as possible.

    Raises
    ------
    ConfigError
        The text is not YAML or JSON, so that nothing in it can be read.
    """
    faults: list[str] = []
    bodies = _by_kind(parse_documents(text, source=source), faults)
    scheduler = default_config()
    if KIND in bodies:
        scheduler = _read_scheduler(bodies[KIND], faults)
    own = MoorageConfiguration()
    if OWN_KIND in bodies:
        own = _read_own(bodies[OWN_KIND], scheduler, faults)
    loaded = LoadedConfiguration(scheduler, own)
    # A version that is not supported is among the faults already.
    return Reading(loaded if faults else emulating(loaded), faults)


def config_from_values(values: object, *, source: str = "") -> KubeSchedulerConfiguration:
    """Read Kubernetes' own document from plain values, e.g. decoded JSON.

    Returns
    -------
    KubeSchedulerConfiguration
        With defaults filled in; arguments of in-tree plugins are structs of `plugin_args`.

    Raises
    ------
    ConfigError
        Every fault found, as Kubernetes field errors.
    """
    faults: list[str] = []
    body = _by_kind([values], faults).get(KIND)
    config = default_config() if body is None else _read_scheduler(body, faults)
    if faults:
        raise ConfigError(faults, source=source)
    if body is None:
        raise ConfigError([_unexpected(values)], source=source)
    return config


def _by_kind(documents: list[Any], faults: list[str]) -> dict[str, Mapping[str, Any]]:
    """Return the readable documents by kind; record a fault for each other document."""
    by_kind: dict[str, Mapping[str, Any]] = {}
    for document in documents:
        body = document if isinstance(document, Mapping) else {}
        kind = str(body.get("kind"))
        expected = body.get("apiVersion") == _VERSIONS.get(kind, "")
        if not expected:
            faults.append(_unexpected(document))
        if not expected and not (kind == KIND and is_past(body.get("apiVersion"))):
            continue
        if kind in by_kind:
            faults.append(f"{kind}: Duplicate value: a file holds one of each kind")
        else:
            by_kind[kind] = body
    if not documents:
        faults.append(_unexpected(None))
    return by_kind


def _unexpected(document: object) -> str:
    if not isinstance(document, Mapping):
        return f"expected an object with apiVersion {API_VERSION} and kind {KIND}"
    version, kind = document.get("apiVersion"), document.get("kind")
    expected = _VERSIONS.get(str(kind), "")
    if expected and str(version).startswith(expected.partition("/")[0] + "/"):
        return (
            f"no kind {kind!r} is registered for version {version!r}: use {expected}"
            f"{changes_since(version)}"
        )
    if kind == "Policy":
        return f"couldn't decode as {KIND}, got apiVersion {version!r} and kind 'Policy': {POLICY}"
    return (
        f"couldn't decode as {KIND}, got apiVersion {version!r} and kind {kind!r}: "
        f"expected {API_VERSION} and {KIND}, or {OWN_API_VERSION} and {OWN_KIND}"
    )


def _read_scheduler(body: Mapping[str, Any], faults: list[str]) -> KubeSchedulerConfiguration:
    reader = Reader()
    config = reader.convert_value(KubeSchedulerConfiguration, body) or KubeSchedulerConfiguration()
    faults += [with_advice(fault) for fault in reader.faults]
    for name, listed in (("profiles", config.profiles), ("extenders", config.extenders)):
        if len(listed) > _LISTED_MAX:
            faults.append(f"{name}: Too many: {len(listed)}: must have at most {_LISTED_MAX} items")
    profiles = [
        _with_args(profile, f"profiles[{index}]", faults)
        for index, profile in enumerate(config.profiles[:_LISTED_MAX])
    ]
    faults += _explicitly_unnamed(body)
    config = with_defaults(msgspec.structs.replace(config, profiles=profiles))
    faults += validate(config)
    return config


def _explicitly_unnamed(body: Mapping[str, Any]) -> list[str]:
    """Return the fault of a single profile whose name is written as empty.

    Only a name that is left out has a default; in the struct both are empty. The names of several
    profiles are checked by `validate`.
    """
    profiles = body.get("profiles")
    if not isinstance(profiles, list) or len(profiles) != 1 or not isinstance(profiles[0], Mapping):
        return []
    unnamed = profiles[0].get("schedulerName") == ""
    return ["profiles[0].schedulerName: Required value"] if unnamed else []


def _read_own(
    body: Mapping[str, Any], scheduler: KubeSchedulerConfiguration, faults: list[str]
) -> MoorageConfiguration:
    reader = Reader()
    config = reader.convert_value(MoorageConfiguration, body) or MoorageConfiguration()
    names = [profile.scheduler_name for profile in scheduler.profiles]
    found = [*reader.faults, *own_faults(config, names, extenders=bool(scheduler.extenders))]
    # Both documents have `profiles`; without the kind it would be unclear whose are meant.
    faults += [f"{OWN_KIND}: {fault}" for fault in found]
    return config


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
