"""The rules of the annotations that say something of a pod.

Mirrors kubernetes v1.36 pkg/apis/core/validation/validation.go (ValidatePodSpecificAnnotations,
ValidateSeccompPodAnnotations, ValidateAppArmorPodAnnotations).
"""

from __future__ import annotations

import re
from typing import Final

from moorage.api.pod import DELETION_COST, MIRROR
from moorage.kinds.kind import FieldError, invalid
from moorage.kinds.tree import Json, containers, text
from moorage.kinds.volumes.sources import path_inside

_SECCOMP: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_OF_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_INTEGER: Final = re.compile("0|-?[1-9][0-9]{0,9}")
_INT32: Final = range(-(2**31), 2**31)


def check_pod_annotations(annotations: Json | None, spec: Json, where: str) -> list[FieldError]:
    """Check the annotations of a pod, or of a template of pods, against its spec."""
    errors: list[FieldError] = []
    for key, value in (annotations or {}).items():
        place = f"{where}[{key}]"
        if key == MIRROR and not text(spec, "nodeName"):
            detail = "must set spec.nodeName if mirror pod annotation is set"
            errors.append(invalid(place, value, detail))
        elif key == DELETION_COST:
            errors += _cost(value, place)
        elif key == _SECCOMP or key.startswith(_SECCOMP_OF_CONTAINER):
            errors += _seccomp(value, where, key)
        elif key.startswith(_APP_ARMOR):
            errors += _app_armor(value, place, key.removeprefix(_APP_ARMOR), spec)
    return errors


def _cost(value: str, where: str) -> list[FieldError]:
    if _INTEGER.fullmatch(value) and int(value) in _INT32:
        return []
    return [invalid(where, value, "must be a 32bit integer")]


def _seccomp(value: str, where: str, key: str) -> list[FieldError]:
    if value in ("runtime/default", "docker/default", "unconfined"):
        return []
    if value.startswith("localhost/"):
        return path_inside(value.removeprefix("localhost/"), f"{where}.{key}")
    return [invalid(f"{where}.{key}", value, "must be a valid seccomp profile")]


def _app_armor(value: str, where: str, name: str, spec: Json) -> list[FieldError]:
    errors = []
    if name not in {text(each, "name") for each in containers(spec)}:
        errors.append(invalid(where, name, "container not found"))
    if value not in ("", "runtime/default", "unconfined") and not value.startswith("localhost/"):
        errors.append(invalid(where, value, f'invalid AppArmor profile name: "{value}"'))
    return errors
