"""ConfigMap, Secret and ServiceAccount.

Mirrors kubernetes v1.36 pkg/apis/core/validation (ValidateConfigMap, ValidateSecret).
"""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from moorage.api import resources
from moorage.kinds.cells import AGE, NAME, column
from moorage.kinds.fields import Rule, defaults, rules, selectable, unchanging
from moorage.kinds.kind import FieldError, Obj, forbidden, invalid, required
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, attach, child, text
from moorage.kinds.values.name_rules import config_key
from moorage.kinds.values.warnings import of_annotations

_LIMIT_BYTES = 1024 * 1024


def _keys(data: Json | None, field: str) -> list[FieldError]:
    return [
        invalid(f"{field}[{key}]", key, fault) for key in data or {} for fault in config_key(key)
    ]


def _only_once(obj: Obj, where: str) -> list[FieldError]:
    detail, binary = "duplicate of key present in binaryData", child(obj, "binaryData")
    return [invalid(f"data[{key}]", key, detail) for key in child(obj, "data") if key in binary]


def _size(*fields: str) -> Rule:
    def check(obj: Any, where: str) -> list[FieldError]:
        size = sum(len(str(value)) for field in fields for value in child(obj, field).values())
        detail = f"may not be more than {_LIMIT_BYTES} bytes"
        too_long = FieldError("FieldValueTooLong", fields[0], "", detail)
        return [too_long] if size > _LIMIT_BYTES else []

    return check


def _sealed(new: Obj, old: Obj) -> list[FieldError]:
    """Check that an object that is marked as immutable stays as it is."""
    if old.get("immutable") is not True:
        return []
    changed = [] if new.get("immutable") is True else ["immutable"]
    changed += [field for field in ("data", "binaryData") if new.get(field) != old.get(field)]
    detail = "field is immutable when `immutable` is set"
    return [forbidden(field, detail) for field in changed]


def _secret_change(new: Obj, old: Obj) -> list[FieldError]:
    return unchanging("type")(new, old) + _sealed(new, old)


# Type of a secret -> the keys its data must have.
_SECRET_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_IN_JSON = frozenset({".dockercfg", ".dockerconfigjson"})
_ACCOUNT_OF_TOKEN = "kubernetes.io/service-account.name"


def _secret_type(secret: Obj, where: str) -> list[FieldError]:
    """Check that a secret has the keys that its type requires."""
    kind, data = text(secret, "type"), child(secret, "data")
    if kind == "kubernetes.io/service-account-token":
        if child(secret, "metadata", "annotations").get(_ACCOUNT_OF_TOKEN):
            return []
        return [required(f"metadata.annotations[{_ACCOUNT_OF_TOKEN}]")]
    if kind == "kubernetes.io/basic-auth":
        keys = ("username", "password")
        return [] if data.keys() & set(keys) else [required(f"data[{key}]") for key in keys]
    errors = []
    for key in _SECRET_KEYS.get(kind, ()):
        if key not in data or (key == "ssh-privatekey" and not data[key]):
            errors.append(required(f"data[{key}]"))
        elif key in _IN_JSON and (fault := _json_fault(data[key])):
            errors.append(invalid(f"data[{key}]", "<secret contents redacted>", fault))
    return errors


def _json_fault(encoded: str) -> str:
    """Return why base64 data is not a JSON object; empty when it is one."""
    try:
        msgspec.json.decode(base64.b64decode(encoded), type=dict)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        return str(error)
    return ""


def _encode_text(obj: Json) -> None:
    """Encode the plain text in stringData into data."""
    for key, value in (obj.pop("stringData", None) or {}).items():
        attach(obj, "data")[key] = base64.b64encode(str(value).encode()).decode()


def _entries(obj: Obj) -> str:
    return str(len(child(obj, "data")) + len(child(obj, "binaryData")))


_ANNOTATIONS = {
    "kubernetes.io/enforce-mountable-secrets": (
        "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
    ),
}

KINDS = (
    ServedKind(
        resource=resources.CONFIG_MAPS,
        columns=(NAME, column("Data", _entries, "Number of entries"), AGE),
        rules=rules(("data binaryData", _keys), _only_once, _size("data", "binaryData")),
        change=_sealed,
    ),
    ServedKind(
        resource=resources.SECRETS,
        columns=(
            NAME,
            column("Type", "type", "What the secret is for"),
            column("Data", _entries, "Number of entries"),
            AGE,
        ),
        defaults=defaults(_encode_text, empty={"type": "Opaque"}),
        fields=selectable("type"),
        rules=rules(("data", _keys), _size("data"), _secret_type),
        change=_secret_change,
    ),
    ServedKind(
        resource=resources.SERVICE_ACCOUNTS,
        shown_when_deleted=True,
        acted_on_by="the account controller, authentication",
        columns=(NAME, AGE),
        more_subresources=frozenset({"token"}),
        warn_of_new=lambda obj: of_annotations(obj, _ANNOTATIONS),
    ),
)
