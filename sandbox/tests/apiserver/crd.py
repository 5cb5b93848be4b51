"""A definition of custom resources to vary, and the paths of its objects."""

from __future__ import annotations

import copy
from typing import Any

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CARS = "/apis/example.com/v1/namespaces/default/cars"

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["color"],
            "properties": {
                "color": {"type": "string", "enum": ["red", "blue"]},
                "wheels": {"type": "integer", "minimum": 3, "maximum": 18, "default": 4},
                "plate": {"type": "string", "pattern": "^[A-Z]+-[0-9]+$", "maxLength": 9},
                "doors": {
                    "type": "array",
                    "maxItems": 5,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string"},
                            "open": {"type": "boolean", "default": False},
                        },
                    },
                },
                "tags": {
                    "type": "array",
                    "x-kubernetes-list-type": "set",
                    "items": {"type": "string"},
                },
                "port": {
                    "x-kubernetes-int-or-string": True,
                    "anyOf": [{"type": "integer"}, {"type": "string"}],
                },
                "extras": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "note": {"type": "string", "nullable": True},
                "limits": {"type": "object", "additionalProperties": {"type": "number"}},
                "replicas": {"type": "integer"},
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "phase": {"type": "string"},
                "replicas": {"type": "integer"},
                "selector": {"type": "string"},
            },
        },
    },
}


def definition(**changes: Any) -> dict[str, Any]:
    """Return a definition of cars; a keyword changes the only version, ``spec__x`` the spec."""
    version: dict[str, Any] = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": copy.deepcopy(SCHEMA)},
        "subresources": {"status": {}},
    }
    spec: dict[str, Any] = {
        "group": "example.com",
        "names": {
            "kind": "Car",
            "plural": "cars",
            "singular": "car",
            "shortNames": ["cr"],
            "categories": ["all"],
        },
        "scope": "Namespaced",
        "versions": [version],
    }
    for key, value in changes.items():
        if key.startswith("spec__"):
            spec[key.removeprefix("spec__")] = value
        else:
            version[key] = value
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{spec['names']['plural']}.{spec['group']}"},
        "spec": spec,
    }


def car(name: str = "a", *, api_version: str = "example.com/v1", **spec: Any) -> dict[str, Any]:
    """Return a car; red unless told otherwise."""
    return {
        "apiVersion": api_version,
        "kind": "Car",
        "metadata": {"name": name},
        "spec": {"color": "red"} | spec,
    }
