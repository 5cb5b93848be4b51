"""Packs ``messages.json.gz``, which `moorage_sandbox.apiserver.protobuf.facts` reads.

Place in the flow: run by hand when the API's version changes; `test_facts` checks that the shipped
file is what comes out. Sources: field numbers and types of Kubernetes' generated.proto files, in
``numbers.json.gz`` as package.Message -> [[number, name, type, label], ...]; the definitions of
`moorage.kinds.facts`; and the Go types that kubectl and helm were built from.

    python -m sandbox.tests.apiserver.protobuf.pack
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, Final

from moorage.kinds.facts import definitions, resources, resources_of_1_37
from tests.kubectl.go_types import GoField, struct_types
from tests.kubectl.install import RELEASES, kubectl_path

PACKED: Final = Path("sandbox/src/moorage_sandbox/apiserver/protobuf/messages.json.gz")

# Groups whose kinds are in no OpenAPI document: they come and go, or another server has them.
_OTHER_GROUPS: Final = {
    "metrics.k8s.io/v1beta1": "k8s.io.metrics.pkg.apis.metrics.v1beta1",
    "metrics.k8s.io/v1alpha1": "k8s.io.metrics.pkg.apis.metrics.v1alpha1",
    "apidiscovery.k8s.io/v2": "k8s.io.api.apidiscovery.v2",
    "apidiscovery.k8s.io/v2beta1": "k8s.io.api.apidiscovery.v2beta1",
    "meta.k8s.io/v1": "k8s.io.apimachinery.pkg.apis.meta.v1",
    "policy/v1beta1": "k8s.io.api.policy.v1beta1",
    "authentication.k8s.io/v1beta1": "k8s.io.api.authentication.v1beta1",
    "authorization.k8s.io/v1beta1": "k8s.io.api.authorization.v1beta1",
}

# Neither program has these types. Always written: no omitempty; a pointer: told when zero.
_REGISTRATION: Final = "k8s.io.kube_aggregator.pkg.apis.apiregistration."
_UNTOLD: Final = {
    "APIServiceSpec": {"groupPriorityMinimum": "z", "versionPriority": "z", "service": "p"},
    "APIServiceCondition": {"type": "z", "status": "z", "lastTransitionTime": "z"},
    "ServiceReference": {"port": "p"},
    "APIService": {"metadata": "z", "spec": "z", "status": "z"},
    "APIServiceList": {"metadata": "z"},
}


def numbers() -> dict[str, list[tuple[int, str, str, str]]]:
    """Return (number, name, type, label) of each message's fields, by the message's full name."""
    source = Path(__file__).with_name("numbers.json.gz")
    found: dict[str, list[tuple[int, str, str, str]]]
    found = json.loads(gzip.decompress(source.read_bytes()))
    return found


def pack() -> dict[str, Any]:
    """Return the content of the packed file: packages, and which group versions they serve."""
    types = go_types()
    packages: dict[str, dict[str, list[Any]]] = {}
    for full, fields in sorted(numbers().items()):
        package, _, message = full.rpartition(".")
        told = {int(number): field for number, field in tagged(types.get(go_name(full), []))}
        rows = [_row(full, field, told.get(field[0])) for field in fields]
        packages.setdefault(package, {})[message] = rows
    return {"packages": packages, "versions": _versions(packages)}


def go_types() -> dict[str, list[GoField]]:
    """Return the struct types of the newest pinned kubectl and of the helm beside it."""
    programs = ("helm", "kubectl")
    found: dict[str, list[GoField]] = {}
    for program in programs:
        found |= struct_types(kubectl_path(RELEASES[0], program=program))
    return found


def go_name(full: str) -> str:
    """Return the Go name of a message: ``k8s.io/api/core/v1.Pod``."""
    package, _, message = full.removeprefix("k8s.io.").rpartition(".")
    return f"k8s.io/{package.replace('.', '/').replace('_', '-')}.{message}"


def tagged(fields: list[GoField]) -> list[tuple[int, GoField]]:
    """Return (number, field) of the fields that are in the message too."""
    found = []
    for field in fields:
        parts = field.tagged("protobuf")
        if parts and len(parts) > 1:
            found.append((int(parts[1]), field))
    return found


def letters(field: GoField) -> str:
    """Return how a single field is written: ``i``, ``p``, ``v`` or ``z``, as in `facts.Field`."""
    _, *options = field.tagged("json") or ["", "omitempty"]
    if "inline" in options:
        return "i"
    if field.kind == "pointer":
        return "p"
    omitted = "omitzero" if field.kind == "struct" else "omitempty"
    return "v" if omitted in options else "z"


def _row(full: str, field: tuple[int, str, str, str], told: GoField | None) -> list[Any]:
    number, name, type_name, label = field
    json_name = ((told and told.tagged("json")) or [name])[0].strip("-") or name
    if label == "repeated":
        how = "r"
    elif label == "map":
        how = "m"
    elif told is not None:
        how = letters(told)
    elif full.startswith(_REGISTRATION):
        how = _UNTOLD.get(full.rpartition(".")[2], {}).get(name, "v")
    else:
        how = "p"
    row = [number, json_name, type_name, how]
    return row if json_name == name else [*row, name]


def _versions(packages: dict[str, Any]) -> dict[str, str]:
    found = dict(_OTHER_GROUPS)
    older = {(each.group, each.version) for each in resources()}
    # The numbers are those of 1.36; `facts` adds the messages that only 1.37 has.
    newer = {(each.group, each.version) for each in resources_of_1_37()} - older
    for name, definition in definitions().items():
        package = name.rpartition(".")[0].replace("io.k8s.", "k8s.io.", 1).replace("-", "_")
        for kind in definition.group_version_kind:
            version = f"{kind['group']}/{kind['version']}".removeprefix("/")
            is_new = (kind["group"], kind["version"]) in newer
            own = package in packages and not package.startswith("k8s.io.apimachinery")
            if own and not is_new:
                found[version] = package
    return dict(sorted(found.items()))


def main() -> None:
    """Write the packed file."""
    content = json.dumps(pack(), separators=(",", ":")).encode()
    PACKED.write_bytes(gzip.compress(content, 9, mtime=0))


if __name__ == "__main__":
    main()
