"""The configurations of the scheduler in worlds, by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import msgspec

from moorage.api.yaml_text import read_one, write_yaml
from moorage.config.feature_gates import feature_gates, group_gates
from moorage.config.load import parse_config
from moorage.config.own import GroupMode, LoadedConfiguration, OwnProfile

_NAME: Final = "default-scheduler"

PLUGINS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "coscheduling": "enabled: [{name: Coscheduling}], disabled: [{name: PrioritySort}]",
        "elastic-quotas": (
            "enabled: [{name: CapacityScheduling}], disabled: [{name: DefaultPreemption}]"
        ),
        "gpu-shares": "enabled: [{name: GpuShare}, {name: GpuBestFit}], disabled: []",
    }
)
"""Of each part of a set-up: the plugins that it enables and disables, as YAML."""

PERMIT: Final = "permit"
"""The part of a set-up in which members of groups are placed one by one."""


COMPLETE: Final = "complete-groups"
"""The part of a set-up in which places for unlike members are searched completely."""

TWO_PROFILES: Final = "two-profiles"
"""The part of a set-up with a second profile, which is configured like the first one."""

SECOND_PROFILE: Final = "second-scheduler"
"""Name of the second profile."""


def setup_name(parts: set[str]) -> str:
    """Return the name of a set-up with these parts, keys of `PLUGINS` or names above."""
    return "+".join(sorted(parts)) or "default"


@cache
def configuration(setup: str) -> LoadedConfiguration:
    """Return the configuration of a set-up; the feature gates of pod groups are on in all."""
    parts = () if setup == "default" else setup.split("+")
    enabled: list[dict[str, Any]] = []
    disabled: list[dict[str, Any]] = []
    for part in parts:
        if part in PLUGINS:
            plugins = read_one(f"{{{PLUGINS[part]}}}")
            enabled += plugins["enabled"]
            disabled += plugins["disabled"]
    names = (_NAME, SECOND_PROFILE) if TWO_PROFILES in parts else (_NAME,)
    points = {"multiPoint": {"enabled": enabled, "disabled": disabled}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": name, "plugins": points} for name in names],
    }
    loaded = parse_config(write_yaml(document), source=f"set-up {setup}")
    own = loaded.own
    mode: GroupMode = "permit" if PERMIT in parts else "trial"
    complete = True if COMPLETE in parts else None
    if PERMIT in parts or complete:
        profiles = [
            OwnProfile(scheduler_name=name, group_mode=mode, complete_groups=complete)
            for name in names
        ]
        own = msgspec.structs.replace(own, profiles=profiles)
    return msgspec.structs.replace(loaded, own=own, gates=feature_gates(group_gates()))
