"""The configurations that the schedulers of a simulation can have, by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

import msgspec

from moorage.base.errors import UsageError
from moorage.config.feature_gates import feature_gates, group_gates
from moorage.config.load import parse_config
from moorage.config.own import LoadedConfiguration, OwnProfile

_KUBERNETES: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"""

_COSCHEDULING: Final = """
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: Coscheduling}], disabled: [{name: PrioritySort}]}
"""

_QUOTAS: Final = """
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: CapacityScheduling}], disabled: [{name: DefaultPreemption}]}
"""

_BROKEN_PLUGIN: Final = """
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: BrokenPlugin}]}
"""

_EXTENDER: Final = """
extenders:
- urlPrefix: http://extender.example/one
  filterVerb: filter
  prioritizeVerb: prioritize
  preemptVerb: preempt
  weight: 1
  httpTimeout: 2s
  nodeCacheCapable: true
"""

# An attempt goes on without the second extender when that one fails.
_EXTENDERS: Final = (
    _EXTENDER
    + """\
- urlPrefix: http://extender.example/two
  filterVerb: filter
  httpTimeout: 1s
  nodeCacheCapable: true
  ignorable: true
"""
)

# Other scores, which change where pods go and not whether they go.
_SCORES: Final = """
percentageOfNodesToScore: 50
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: NodeAffinity, weight: 7}], disabled: [{name: ImageLocality}]}
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}
"""

# A search ends with the first node that takes the pod, as in kube-scheduler.
_UNSCORED: Final = """
percentageOfNodesToScore: 0
profiles:
- schedulerName: default-scheduler
  plugins:
    preScore: {disabled: [{name: "*"}]}
    score: {disabled: [{name: "*"}]}
"""

_DELAYED_STEP: Final = _BROKEN_PLUGIN.replace("BrokenPlugin", "DelayedStep")

SETUPS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "default": "",
        "coscheduling": _COSCHEDULING,
        "quotas": _QUOTAS,
        "broken plugin": _BROKEN_PLUGIN,
        "delayed step": _DELAYED_STEP,
        "extender": _EXTENDER,
        "extenders": _EXTENDERS,
        "scores": _SCORES,
        "unscored": _UNSCORED,
        "gangs at permit": "",
        "teams at permit": _COSCHEDULING,
    }
)
"""The text that each set-up adds to the default configuration, as in a configuration file."""


_AT_PERMIT: Final = OwnProfile(scheduler_name="default-scheduler", group_mode="permit")
"""The members of a group are placed one by one, and wait for each other at Permit."""


@cache
def configuration(setup: str) -> LoadedConfiguration:
    """Return the configuration of a set-up; the feature gates of pod groups are on in all.

    Raises
    ------
    UsageError
        There is no such set-up.
    """
    if setup not in SETUPS:
        raise UsageError(f"no set-up {setup!r}; there are {', '.join(SETUPS)}")
    loaded = parse_config(_KUBERNETES + SETUPS[setup], source=f"set-up {setup}")
    own = loaded.own
    if setup.endswith("at permit"):
        own = msgspec.structs.replace(own, profiles=[_AT_PERMIT])
    return msgspec.structs.replace(loaded, own=own, gates=feature_gates(group_gates()))


def without_extenders(loaded: LoadedConfiguration) -> LoadedConfiguration:
    """Return a configuration without its extenders, which pass every node at rest."""
    scheduler = msgspec.structs.replace(loaded.scheduler, extenders=[])
    return msgspec.structs.replace(loaded, scheduler=scheduler)
