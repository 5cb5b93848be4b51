"""YAML as Kubernetes reads it: the values JSON has, and no references.

Place in the flow: `calls` comes here with a body that is not JSON. A module of its own, so that
the YAML library is imported only then.
"""

from __future__ import annotations

from typing import Any

import yaml

_FastLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_FastLoader):  # type: ignore[misc]
    """Leaves times as text, as JSON has them."""


_Loader.yaml_implicit_resolvers = {
    letter: [each for each in resolvers if each[0] != "tag:yaml.org,2002:timestamp"]
    for letter, resolvers in _FastLoader.yaml_implicit_resolvers.items()
}


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
