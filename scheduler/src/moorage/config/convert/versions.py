"""``KubeSchedulerConfiguration`` from v1alpha1 to v1beta3, converted to v1.

Source: kubernetes v1.13 to v1.30 ``staging/src/k8s.io/kube-scheduler/config/{v1alpha1,v1alpha2,
v1beta1,v1beta2,v1beta3}/types.go`` and their ``default_plugins.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moorage.config.convert.policy import provider_plugins
from moorage.config.convert.profile import ProfileConversion
from moorage.config.convert.remarks import Remarks
from moorage.config.past import PAST_FIELDS, PAST_VERSIONS
from moorage.config.types import API_VERSION, KIND

_PREEMPTION: Final = "DefaultPreemption"
_VOLUME_BINDING: Final = "VolumeBinding"
_POD_AFFINITY: Final = "InterPodAffinity"

_LOCK_FIELDS: Final = {
    "lockObjectName": "resourceName",
    "lockObjectNamespace": "resourceNamespace",
}
_OF_ONE_PROFILE: Final = ("schedulerName", "plugins", "pluginConfig")
_TAKEN_APART: Final = frozenset(
    {
        *_OF_ONE_PROFILE,
        "apiVersion",
        "kind",
        "leaderElection",
        "profiles",
        "algorithmSource",
        "bindTimeoutSeconds",
        "disablePreemption",
        "hardPodAffinitySymmetricWeight",
    }
)


def convert_version(body: Mapping[str, Any], remarks: Remarks) -> dict[str, Any]:
    """Return a configuration of an earlier version as a v1 configuration.

    Parameters
    ----------
    body
        Plain values; the ``apiVersion`` is one of the past.
    remarks
        Told of everything that was dropped or changed.
    """
    version = str(body.get("apiVersion")).rpartition("/")[2]
    converted: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND}
    for key, value in body.items():
        if key in ("healthzBindAddress", "metricsBindAddress"):
            remarks.dropped(key, value, PAST_FIELDS[key])
        elif key not in _TAKEN_APART and value is not None:
            converted[key] = value
    if isinstance(body.get("leaderElection"), Mapping):
        converted["leaderElection"] = leader_election(body["leaderElection"], remarks)
    _say_of_algorithm(body.get("algorithmSource"), remarks)
    profiles = [
        _profile(profile, f"profiles[{index}]" if body.get("profiles") else "", body, version)
        for index, profile in enumerate(_profiles(body))
    ]
    for profile, told in profiles:
        remarks.remarks += told.remarks
        if profile:
            converted.setdefault("profiles", []).append(profile)
    return converted


def _profiles(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    given = body.get("profiles")
    if isinstance(given, list) and given:
        return [each if isinstance(each, Mapping) else {} for each in given]
    return [{key: body[key] for key in _OF_ONE_PROFILE if body.get(key) is not None}]


def _profile(
    written: Mapping[str, Any], path: str, body: Mapping[str, Any], version: str
) -> tuple[dict[str, Any], Remarks]:
    remarks = Remarks()
    conversion = ProfileConversion(path, remarks)
    conversion.arguments(written.get("pluginConfig"))
    _old_settings(body, conversion, remarks)
    lists = written.get("plugins")
    lists = dict(lists) if isinstance(lists, Mapping) else {}
    if version == "v1alpha1" and "postFilter" in lists:
        lists["preScore"] = lists.pop("postFilter")
        remarks.changed("plugins.postFilter", "the point is called preScore")
    for point, sets in _provider_of(body).items():
        lists.setdefault(point, sets)
    plugins = conversion.plugins(lists)
    if body.get("disablePreemption"):
        plugins["multiPoint"] = {"disabled": [{"name": _PREEMPTION}]}
        remarks.changed("disablePreemption", f"{_PREEMPTION} is disabled")
    if PAST_VERSIONS.index(version) < PAST_VERSIONS.index("v1beta3"):
        conversion.keep_weights(plugins)
    converted = {key: written[key] for key in written if key not in ("plugins", "pluginConfig")}
    if plugins:
        converted["plugins"] = plugins
    if config := conversion.plugin_config():
        converted["pluginConfig"] = config
    return converted, remarks


def _provider_of(body: Mapping[str, Any]) -> dict[str, Any]:
    source = body.get("algorithmSource")
    provider = source.get("provider") if isinstance(source, Mapping) else None
    return provider_plugins(str(provider)) if provider else {}


def _say_of_algorithm(source: Any, remarks: Remarks) -> None:
    if not isinstance(source, Mapping):
        return
    if source.get("provider"):
        remarks.changed("algorithmSource.provider", f"{source['provider']} became the profile")
    if source.get("policy"):
        why = "convert the Policy file too, with --policy-config-file"
        remarks.dropped("algorithmSource.policy", source["policy"], why)


def _old_settings(body: Mapping[str, Any], conversion: ProfileConversion, remarks: Remarks) -> None:
    """Move settings from the top of the file into the arguments of plugins."""
    weight, seconds = body.get("hardPodAffinitySymmetricWeight"), body.get("bindTimeoutSeconds")
    if weight is not None:
        conversion.add_args(_POD_AFFINITY, {"hardPodAffinityWeight": weight})
        where = f"hardPodAffinityWeight in the args of {_POD_AFFINITY}"
        remarks.changed("hardPodAffinitySymmetricWeight", f"it is {where}")
    if seconds is not None:
        conversion.add_args(_VOLUME_BINDING, {"bindTimeoutSeconds": seconds})
        remarks.changed("bindTimeoutSeconds", f"it is in the args of {_VOLUME_BINDING}")


def leader_election(written: Mapping[str, Any], remarks: Remarks) -> dict[str, Any]:
    """Return the settings of leader election with today's names."""
    converted: dict[str, Any] = {}
    for key, value in written.items():
        if key in _LOCK_FIELDS:
            converted[_LOCK_FIELDS[key]] = value
            remarks.changed(f"leaderElection.{key}", f"it is called {_LOCK_FIELDS[key]}")
        elif key == "resourceLock" and value not in ("leases", "", None):
            converted[key] = "leases"
            remarks.changed("leaderElection.resourceLock", f"leases instead of {value}")
        elif value not in ("", None):
            converted[key] = value
    return converted
