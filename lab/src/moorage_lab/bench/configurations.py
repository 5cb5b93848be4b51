"""The scheduler configurations of benchmarks, as YAML for a file or for `parse_config`."""

from __future__ import annotations

from typing import Any

from moorage.api.yaml_text import write_yaml

_DEFAULT = "default-scheduler"


def coscheduling(group_mode: str) -> str:
    """Return the default profile with Coscheduling.

    Parameters
    ----------
    group_mode
        ``trial`` or ``permit``: how the pods of a group get their nodes.
    """
    plugins = {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "PrioritySort"}]}
    own = {
        "apiVersion": "moorage.dev/v1alpha1",
        "kind": "MoorageConfiguration",
        "profiles": [{"schedulerName": _DEFAULT, "groupMode": group_mode}],
    }
    profiles = [{"schedulerName": _DEFAULT, "plugins": {"multiPoint": plugins}}]
    return f"{_scheduler(profiles=profiles)}---\n{write_yaml(own)}"


def filling(scheduler: str) -> str:
    """Return a configuration that fills nodes up, with a profile and a Lease of its own.

    Parameters
    ----------
    scheduler
        Name of the profile and of the Lease.
    """
    strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}
    return _scheduler(
        leaderElection={"leaderElect": True, "resourceName": scheduler},
        profiles=[{"schedulerName": scheduler, "pluginConfig": [fit]}],
    )


def with_extender(url: str, *, names_only: bool) -> str:
    """Return the default configuration with an extender that filters and prioritizes.

    Parameters
    ----------
    url
        The prefix of the extender's URLs.
    names_only
        Whether nodes are sent by name, not as whole objects.
    """
    extender = {
        "urlPrefix": url,
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "weight": 1,
        "nodeCacheCapable": names_only,
    }
    return _scheduler(extenders=[extender])


def _scheduler(**fields: Any) -> str:
    kind = "KubeSchedulerConfiguration"
    return write_yaml({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": kind, **fields})
