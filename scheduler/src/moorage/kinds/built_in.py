"""The resource types of every built-in kind, and the facts about each type.

Place in the flow: `moorage.kinds` serves one kind for each of `stored_resources`.
`discovery` and `openapi` list the verbs and subresources of this module.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache

from moorage.api.resources import (
    DEPLOYMENTS,
    RESOURCES,
    ResourceType,
)
from moorage.kinds import facts
from moorage.kinds.facts import ResourceFact

# Names that kubectl accepts (ShortNames in kubernetes v1.36 pkg/registry); the facts have none.
_SHORT_NAMES: Mapping[str, tuple[str, ...]] = {
    "certificatesigningrequests": ("csr",),
    "componentstatuses": ("cs",),
    "ipaddresses": ("ip",),
    "volumeattributesclasses": ("vac",),
}
# A proxy passes on every verb.
_PROXIED = ("create", "delete", "get", "patch", "update")
# HTTP actions of the facts -> verbs of discovery.
_VERBS: Mapping[str, tuple[str, ...]] = {
    "get": ("get",),
    "list": ("list", "watch"),
    "post": ("create",),
    "put": ("update",),
    "patch": ("patch",),
    "delete": ("delete",),
    "deletecollection": ("deletecollection",),
    "connect": ("create", "get"),
}


@cache
def stored_resources() -> tuple[ResourceType, ...]:
    """Every built-in resource that can be listed, the best version of each before the others.

    The types of `moorage.api.resources` come first, in their order.
    """
    listed = [
        resource_type(_api_version(each), each.plural)
        for each in facts.resources()
        if not each.subresource and "list" in each.verbs
    ]
    listed.sort(key=lambda each: (version_rank(each.api_version), each.plural))
    return tuple(dict.fromkeys([*RESOURCES, *listed]))


@cache
def resource_type(api_version: str, plural: str) -> ResourceType:
    """Return the type of a built-in resource.

    Parameters
    ----------
    api_version
        ``v1`` or ``group/version``.
    plural
        Name of the resource in a path.

    Raises
    ------
    KeyError
        The facts have no such resource.
    """
    for named in RESOURCES:
        if (named.api_version, named.plural) == (api_version, plural):
            return named
    facts = _facts()[api_version, plural, ""]
    return ResourceType(
        group=facts.group,
        version=facts.version,
        kind=facts.kind,
        plural=plural,
        singular=facts.kind.lower(),
        namespaced=facts.namespaced,
        short_names=_SHORT_NAMES.get(plural, ()),
    )


def fact_of(resource: ResourceType, subresource: str = "") -> ResourceFact | None:
    """Return the facts about a resource or subresource; None for a type that is not built in."""
    return _facts().get((resource.api_version, resource.plural, subresource))


def verbs_of(fact: ResourceFact) -> tuple[str, ...]:
    """Return the verbs of discovery, sorted."""
    if fact.subresource == "proxy":
        return _PROXIED
    return tuple(sorted({verb for action in fact.verbs for verb in _VERBS[action]}))


# More pairs than there are in built-in kinds; definitions of custom resources come and go.
@lru_cache(maxsize=1024)
def subresource_body(resource: ResourceType, name: str) -> tuple[ResourceType, tuple[str, ...]]:
    """Return the type of the body of a subresource, and the verbs.

    Custom resources have the same ``status`` and ``scale`` as built-in kinds.
    """
    fact = fact_of(resource, name) or (fact_of(DEPLOYMENTS, name) if name == "scale" else None)
    if fact is None:
        return resource, ("get", "patch", "update")
    body = (fact.body_group, fact.body_version, fact.kind)
    if body == (resource.group, resource.version, resource.kind):
        return resource, verbs_of(fact)
    plural, singular = resource.plural, resource.singular
    return ResourceType(*body, plural, singular, resource.namespaced), verbs_of(fact)


@cache
def _facts() -> Mapping[tuple[str, str, str], ResourceFact]:
    every = (*facts.resources(), *facts.resources_of_1_37())
    return {(_api_version(each), each.plural, each.subresource): each for each in every}


def _api_version(fact: ResourceFact) -> str:
    return f"{fact.group}/{fact.version}" if fact.group else fact.version


_VERSION = re.compile("v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")


def version_rank(api_version: str) -> tuple[bool, str, int, int, int, str]:
    """Order API versions: by group, and within a group by upstream's preference.

    The preference is v2, v1, v1beta2, v1beta1, v1alpha1, others.
    """
    group, _, version = api_version.rpartition("/")
    match = _VERSION.fullmatch(version)
    if match is None:
        return (bool(group), group, 3, 0, 0, version)
    stage = {None: 0, "beta": 1, "alpha": 2}[match[2]]
    return (bool(group), group, stage, -int(match[1]), -int(match[3] or 0), version)
