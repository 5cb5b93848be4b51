"""YAML as Kubernetes reads and writes it: the values JSON has, and no references.

Place in the flow: `applying.calls` comes here with a body that is not JSON, `yaml_calls` with
calls in YAML. A module of its own, so that the YAML library is imported only then.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import yaml

_FastLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FastDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
# Words that Python's YAML writes as they are, and Go's reads as true and false.
_SHORT_TRUTHS = re.compile("^(?:y|Y|n|N)$")


class _Loader(_FastLoader):  # type: ignore[misc]
    """Leaves times as text, and makes every key text, as JSON has them."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
        self.flatten_mapping(node)
        return {
            self._key(key): self.construct_object(value, deep=deep) for key, value in node.value
        }

    def _key(self, node: Any) -> str:
        key = self.construct_object(node, deep=True)
        if isinstance(key, str):
            return key
        if key is None or isinstance(key, bool | int | float):
            return msgspec.json.encode(key).decode()
        raise yaml.YAMLError("a key is neither text nor a number")


_Loader.yaml_implicit_resolvers = {
    letter: [each for each in resolvers if each[0] != "tag:yaml.org,2002:timestamp"]
    for letter, resolvers in _FastLoader.yaml_implicit_resolvers.items()
}


class _Dumper(_FastDumper):  # type: ignore[misc]
    """Quotes whatever a reader of YAML 1.1 would not take for text."""

    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", _SHORT_TRUTHS, list("yYnN"))


def load(body: bytes) -> Any:
    """Decode one document.

    Raises
    ------
    ValueError
        It is not YAML, more than one document, or has aliases: a short text with aliases can
        stand for an object without bounds.
    """
    try:
        for event in yaml.parse(body, Loader=_FastLoader):
            if isinstance(event, yaml.AliasEvent):
                raise ValueError("aliases are not served")  # noqa: TRY004
        return yaml.load(body, Loader=_Loader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from error


def dump(value: Any) -> bytes:
    """Encode what JSON can say as one document, keys in order."""
    text: bytes = yaml.dump(
        value, Dumper=_Dumper, encoding="utf-8", allow_unicode=True, default_flow_style=False
    )
    return text
