"""Warnings about valid pods and pod templates that hardly say what their author means.

Place in the flow: a kind with pods gives them to the client that writes an object. Mirrors
kubernetes v1.36 pkg/api/pod/warnings.go; paths of files that overlap in a volume are not found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.api.names import DNS_LABEL_LENGTH_MAX, dns_label_faults
from moorage.kinds.tree import Json, child, containers, number, objects, text
from moorage.kinds.values.warnings import (
    may_have_fractions,
    of_annotations,
    of_claim,
    of_expressions,
    of_fractions,
    of_labels,
    of_volume,
)

_SYSCTLS = 'non-functional in v1.11+; use the "sysctls" field instead'
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": _SYSCTLS,
    "security.alpha.kubernetes.io/unsafe-sysctls": _SYSCTLS,
}
_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_APPARMOR = 'deprecated since v1.30; use the "appArmorProfile" field instead'
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
# The fields of a pod, besides its containers, that there are warnings about.
_NOTABLE = frozenset(
    {
        "affinity",
        "hostAliases",
        "imagePullSecrets",
        "nodeSelector",
        "overhead",
        "terminationGracePeriodSeconds",
        "topologySpreadConstraints",
        "volumes",
    }
)
_NOTHING: Json = {}
_BYTES = ("memory", "ephemeral-storage")
_NULL_SELECTOR = "a null labelSelector results in matching no pod"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def of_pod(pod: Json) -> list[str]:
    """Return the warnings about a new pod."""
    return of_name(pod, "in the Pod's hostname") + of_template(pod, "")


def of_owner(owner: Json) -> list[str]:
    """Return the warnings about the name of a new owner of pods."""
    return of_name(owner, "in Pod names and hostnames")


def of_name(obj: Json, used: str) -> list[str]:
    """Return the warning about a name that is no DNS label, and is used as one."""
    name = text(obj, "metadata", "name")
    if "." not in name and len(name) <= DNS_LABEL_LENGTH_MAX:
        # Other faults are refused.
        return []
    return [
        f"metadata.name: this is used {used}, which can result in surprising behavior; "
        f"a DNS label is recommended: [{' '.join(dns_label_faults(name))}]"
    ]


def of_template(template: Json, where: str) -> list[str]:
    """Return the warnings about a pod, or a pod template at a path such as ``spec.template.``."""
    spec = template.get("spec")
    if not spec:
        return []
    found = _of_annotations(template, where) if child(template, "metadata", "annotations") else []
    if not spec.keys().isdisjoint(_NOTABLE):
        found += _of_spec(spec, f"{where}spec.")
    return found + _of_containers(spec, f"{where}spec.")


def _of_spec(spec: Json, at: str) -> list[str]:
    """Return the warnings about the fields in `_NOTABLE`."""
    warnings = []
    if chosen := spec.get("nodeSelector"):
        warnings += of_labels(
            [(f"{at}nodeSelector[{key}]", key) for key in chosen], with_name=False
        )
    if affinity := spec.get("affinity"):
        warnings += _of_affinity(affinity, f"{at}affinity")
    for index, each in enumerate(objects(spec, "topologySpreadConstraints")):
        path = f"{at}topologySpreadConstraints[{index}]"
        warnings += of_labels([(f"{path}.topologyKey", text(each, "topologyKey"))])
        warnings += _of_selector(each, path)
    for index, volume in enumerate(objects(spec, "volumes")):
        path = f"{at}volumes[{index}]"
        warnings += of_volume(volume, path)
        claim = child(volume, "ephemeral", "volumeClaimTemplate", "spec")
        warnings += of_claim(claim, f"{path}.ephemeral.volumeClaimTemplate.spec")
    warnings += _of_repeated(objects(spec, "hostAliases"), "ip", f"{at}hostAliases")
    warnings += _of_repeated(objects(spec, "imagePullSecrets"), "name", f"{at}imagePullSecrets")
    warnings += of_fractions(spec.get("overhead"), _BYTES, f"{at}overhead")
    if number(spec, "terminationGracePeriodSeconds") < 0:
        warnings.append(
            f"{at}terminationGracePeriodSeconds: must be >= 0; negative values are invalid and "
            "will be treated as 1"
        )
    return warnings


def _of_annotations(template: Json, where: str) -> list[str]:
    warnings = of_annotations(template, _ANNOTATIONS, where)
    spec, known = template.get("spec") or {}, {}
    if not child(spec, "securityContext", "seccompProfile"):
        known["seccomp.security.alpha.kubernetes.io/pod"] = _SECCOMP
    guarded = child(spec, "securityContext", "appArmorProfile")
    for container in containers(spec):
        name, own = text(container, "name"), child(container, "securityContext")
        if not own.get("seccompProfile"):
            known[f"container.seccomp.security.alpha.kubernetes.io/{name}"] = _SECCOMP
        if not guarded and not own.get("appArmorProfile"):
            known[f"container.apparmor.security.beta.kubernetes.io/{name}"] = _APPARMOR
    return warnings + of_annotations(template, known, where)


def _of_affinity(affinity: Json, where: str) -> list[str]:
    path = f"{where}.nodeAffinity"
    warnings = []
    for index, term in enumerate(objects(affinity, "nodeAffinity", _REQUIRED, "nodeSelectorTerms")):
        warnings += of_expressions(term, f"{path}.{_REQUIRED}.nodeSelectorTerms[{index}]")
    for index, term in enumerate(objects(affinity, "nodeAffinity", _PREFERRED)):
        warnings += of_expressions(
            child(term, "preference"), f"{path}.{_PREFERRED}[{index}].preference"
        )
    for kind in ("podAffinity", "podAntiAffinity"):
        path = f"{where}.{kind}"
        for index, term in enumerate(objects(affinity, kind, _REQUIRED)):
            warnings += _of_selector(term, f"{path}.{_REQUIRED}[{index}]")
        for index, term in enumerate(objects(affinity, kind, _PREFERRED)):
            weighed = f"{path}.{_PREFERRED}[{index}].podAffinityTerm"
            warnings += _of_selector(child(term, "podAffinityTerm"), weighed)
    return warnings


def _of_selector(term: Mapping[str, Any], where: str) -> list[str]:
    if term.get("labelSelector") is not None:
        return []
    return [f"{where}.labelSelector: {_NULL_SELECTOR}"]


def _of_repeated(entries: list[Json], key: str, where: str) -> list[str]:
    values: set[str] = set()
    warnings = []
    for index, entry in enumerate(entries):
        value = text(entry, key)
        if value in values:
            warnings.append(f'{where}[{index}].{key}: duplicate {key} "{value}"')
        if not value and key == "name":
            warnings.append(f'{where}[{index}].{key}: invalid empty name ""')
        values.add(value)
    return warnings


def _of_containers(spec: Json, at: str) -> list[str]:
    warnings: list[str] = []
    ports: list[tuple[str, Json]] = []
    for kind in _CONTAINERS:
        for index, container in enumerate(spec.get(kind) or ()):
            for part, listed in (container.get("resources") or _NOTHING).items():
                if part != "claims" and may_have_fractions(listed, _BYTES):
                    where = f"{at}{kind}[{index}].resources.{part}"
                    warnings += of_fractions(listed, _BYTES, where)
            if (variables := container.get("env")) and len(variables) > 1:
                warnings += _of_variables(variables, f"{at}{kind}[{index}]")
            for place, port in enumerate(container.get("ports") or ()):
                ports.append((f"{at}{kind}[{index}].ports[{place}]", port))
    if len(ports) > 1 or (ports and ports[0][1].get("hostIP")):
        warnings += _of_ports(ports)
    return warnings


def _of_variables(variables: list[Json], where: str) -> list[str]:
    names: set[str] = set()
    warnings = []
    for index, each in enumerate(variables):
        name, value = text(each, "name"), text(each, "value")
        used = f"$({name})"
        hides = each.get("valueFrom") is not None or value == used or used not in value
        if name in names and hides:
            warnings.append(
                f'{where}.env[{index}]: hides previous definition of "{name}", which may be '
                "dropped when using apply"
            )
        names.add(name)
    return warnings


def _of_ports(ports: list[tuple[str, Json]]) -> list[str]:
    """Return a warning for each two ports of which one may be a mistake.

    Only the ports that such a warning is about are compared: a search of all earlier ports for
    each port would take minutes for a long list.
    """
    earlier = _Ports()
    warnings: list[str] = []
    for where, port in ports:
        address, on_host = text(port, "hostIP"), number(port, "hostPort")
        if address and not on_host:
            warnings.append(f"{where}: hostIP set without hostPort")
        key = (number(port, "containerPort"), text(port, "protocol") or "TCP")
        for _, other, its_address, its_port in earlier.doubtful(key, address, on_host):
            if (address, on_host) == (its_address, its_port):
                how = "duplicate"
            elif not on_host or not its_port:
                how = "overlapping"
            else:
                how = "dangerously ambiguous"
            warnings.append(f"{where}: {how} port definition with {other}")
            if len(warnings) >= _PORT_WARNINGS_MAX:
                return warnings
        earlier.add(key, (len(earlier), where, address, on_host))
    return warnings


# With more, an answer shows only the first few (`replies`): each has more than 40 characters.
_PORT_WARNINGS_MAX = 200

_Port = tuple[int, str, str, int]
"""Place in the order of all ports, path, ``hostIP`` and ``hostPort``."""


class _Ports:
    """The ports of a pod so far, by what another port may collide with."""

    def __init__(self) -> None:
        self._by: dict[tuple[Any, ...], list[_Port]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, key: tuple[int, str], port: _Port) -> None:
        """Take in a port of a number and protocol."""
        _, _, address, on_host = port
        self._count += 1
        for name in ((key,), (key, on_host), (key, on_host, address)):
            self._by.setdefault(name, []).append(port)

    def doubtful(self, key: tuple[int, str], address: str, on_host: int) -> list[_Port]:
        """Return the earlier ports that a new port is a duplicate of, or overlaps; in order."""
        if not on_host:
            return self._by.get((key,), [])
        names: list[tuple[Any, ...]] = [(key, 0), (key, on_host)]
        if address:
            # Two ports with different addresses do not collide.
            names[1:] = [(key, on_host, address), (key, on_host, "")]
        return sorted(port for name in names for port in self._by.get(name, ()))
