"""Tells the kinds of configuration files apart, and converts each to documents of today."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from moorage.base.errors import ConfigError
from moorage.config.convert.policy import convert_policy
from moorage.config.convert.remarks import Remark, Remarks
from moorage.config.convert.versions import convert_version, leader_election
from moorage.config.own import OWN_KIND
from moorage.config.past import GROUP, PAST_VERSIONS, is_past
from moorage.config.strict import parse_documents
from moorage.config.types import API_VERSION, KIND


class Converted(msgspec.Struct, frozen=True):
    """A converted configuration.

    Parameters
    ----------
    documents
        Plain values of each document: kube-scheduler's, and moorage's own where there was one.
    remarks
        Everything that was dropped or changed, in the order of the file.
    """

    documents: list[dict[str, Any]]
    remarks: Sequence[Remark]


def convert_text(text: str, *, source: str = "") -> Converted:
    """Convert a configuration file of an earlier Kubernetes version, or a Policy file.

    Raises
    ------
    ConfigError
        The text is not YAML or JSON, or holds nothing that can be converted.
    """
    remarks, converted, faults = Remarks(), list[dict[str, Any]](), list[str]()
    documents = parse_documents(text, source=source)
    for document in documents:
        body = document if isinstance(document, Mapping) else {}
        kind, version = body.get("kind"), body.get("apiVersion")
        if _is_policy(body):
            converted.append(convert_policy(body, remarks))
        elif kind == KIND and is_past(version):
            converted.append(convert_version(body, remarks))
        elif (kind == KIND and version == API_VERSION) or kind == OWN_KIND:
            converted.append(dict(body))
        else:
            faults.append(_unknown(version, kind))
    if faults or not documents:
        raise ConfigError(faults or ["the file is empty"], source=source)
    return Converted(converted, tuple(remarks.remarks))


def convert_flags(
    flags: Mapping[str, Any], policy: str | None = None, *, source: str = ""
) -> Converted:
    """Convert the flags of kube-scheduler up to 1.22, with the text of a Policy file if given.

    Parameters
    ----------
    flags
        Values by the field of v1alpha1 that each flag set: ``schedulerName``,
        ``hardPodAffinitySymmetricWeight``, ``leaderElection``, ``algorithmSource``.
    policy
        The file of ``--policy-config-file``. A provider has no effect next to it.
    source
        Name of that file.

    Raises
    ------
    ConfigError
        There was no such provider, or the text is no Policy.
    """
    remarks = Remarks()
    head = {"apiVersion": f"{GROUP}/{PAST_VERSIONS[0]}", "kind": KIND}
    if policy is None:
        return Converted([convert_version({**head, **flags}, remarks)], tuple(remarks.remarks))
    documents = parse_documents(policy, source=source)
    if len(documents) != 1 or not _is_policy(documents[0]):
        raise ConfigError(["expected one document of kind Policy"], source=source)
    weight = "hardPodAffinitySymmetricWeight"
    converted = convert_policy({weight: flags.get(weight), **documents[0]}, remarks)
    if name := flags.get("schedulerName"):
        [profile] = converted.get("profiles") or [{}]
        converted["profiles"] = [{"schedulerName": name, **profile}]
    if lock := flags.get("leaderElection"):
        converted["leaderElection"] = leader_election(lock, remarks)
    return Converted([converted], tuple(remarks.remarks))


def _is_policy(document: object) -> bool:
    if not isinstance(document, Mapping):
        return False
    kind = document.get("kind")
    return kind == "Policy" or (kind is None and bool({"predicates", "priorities"} & {*document}))


def _unknown(version: object, kind: object) -> str:
    versions = ", ".join(PAST_VERSIONS)
    return (
        f"apiVersion {version!r} and kind {kind!r} cannot be converted: expected a Policy, or a "
        f"{KIND} of {GROUP} in one of {versions}"
    )
