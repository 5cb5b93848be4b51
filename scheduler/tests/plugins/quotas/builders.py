"""Elastic quotas, and a profile that enforces them, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.api.codec import from_dict
from moorage.api.elastic_quota import ElasticQuota
from moorage.config.merge import expand_profiles
from moorage.config.own import LoadedConfiguration
from moorage.config.types import (
    KubeSchedulerConfiguration,
    PluginRef,
    Plugins,
    PluginSet,
)
from moorage.config.types import Profile as Configured
from moorage.framework.handle import Handle
from moorage.framework.profile import Profile
from moorage.plugins.in_tree import in_tree_registry
from moorage_sandbox.testing.builders import Manifest


def quota_manifest(
    namespace: str,
    minimum: Mapping[str, Any] | None = None,
    maximum: Mapping[str, Any] | None = None,
    *,
    name: str = "quota",
) -> Manifest:
    """Return an ElasticQuota as plain values; None leaves the list out."""
    bounds = {"min": minimum, "max": maximum}
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {field: dict(given) for field, given in bounds.items() if given is not None},
    }


def quota(namespace: str, *bounds: Mapping[str, Any] | None, name: str = "quota") -> ElasticQuota:
    """Return a typed ElasticQuota; the arguments are those of `quota_manifest`."""
    return from_dict(ElasticQuota, quota_manifest(namespace, *bounds, name=name))


def preempting_with(plugin: str) -> LoadedConfiguration:
    """Return a configuration whose one profile preempts by another plugin than the default."""
    chosen = PluginSet(
        enabled=[PluginRef(name=plugin)], disabled=[PluginRef(name="DefaultPreemption")]
    )
    profile = Configured(plugins=Plugins(multi_point=chosen))
    return LoadedConfiguration(KubeSchedulerConfiguration(profiles=[profile]))


def profile_with(plugin: str, handle: Handle) -> Profile:
    """Return that profile, alone."""
    registry = in_tree_registry()
    (spec,) = expand_profiles(preempting_with(plugin).scheduler, registry)
    return Profile(spec, registry, handle)
