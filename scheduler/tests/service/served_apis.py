"""What the API servers of Kubernetes 1.28 to 1.37 serve: groups, versions, resources and verbs.

One JSON file for each version, and its source. The source is the Python client of that version: it
is generated from the release's own OpenAPI description, which has every API version switched on. A
file is written again by ``python -m scheduler.tests.service.served_apis WHEEL``. A description has
no separate path for a watch: what can be listed can be watched.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from moorage.client.transport import Call
from moorage_sandbox.apiserver.rbac.attributes import attributes_of
from moorage_sandbox.apiserver.wire.requests import Request

Verbs = dict[str, dict[str, list[str]]]
"""The verbs by API version, ``apps/v1``, and resource, ``pods/status``."""

_HERE: Final = Path(__file__).parent / "served"
_STABLE: Final = re.compile(r"v\d+")
_CALLS: Final = (
    # Two forms of generated code: until the client 36, and since 37.
    re.compile(r"call_api\(\s*'(?P<path>/apis?/[^']*)', '(?P<method>[A-Z]+)'"),
    re.compile(r"method='(?P<method>[A-Z]+)',\s*resource_path='(?P<path>/apis?/[^']*)'"),
)


def recorded(version: str) -> Verbs:
    """Return what an API server of a Kubernetes version serves when everything is switched on."""
    found: dict[str, dict[str, str]] = json.loads((_HERE / f"{version}.json").read_text())["serves"]
    return {
        api_version: {name: verbs.split() for name, verbs in resources.items()}
        for api_version, resources in found.items()
    }


def served_by_default(version: str) -> Verbs:
    """Return what an API server of a Kubernetes version serves without further flags.

    Since 1.24, new beta versions are off by default, as alpha versions always were. The beta
    versions of before are left out, too: the scheduler uses none of them.
    """
    return {
        api_version: resources
        for api_version, resources in recorded(version).items()
        if _STABLE.fullmatch(api_version.rpartition("/")[2])
    }


class Served:
    """What an API server of a Kubernetes version serves, asked call by call.

    Parameters
    ----------
    version
        The version, such as ``1.36``.
    more
        API versions that are switched on, where the version has them.
    """

    def __init__(self, version: str, *, more: Iterable[str] = ()) -> None:
        everything = recorded(version)
        added = {each: everything[each] for each in more if each in everything}
        self._verbs = served_by_default(version) | added

    def has(self, api_version: str, resource: str, verb: str) -> bool:
        """Whether the server knows a verb of a resource."""
        listed = "list" if verb == "watch" else verb
        return listed in self._verbs.get(api_version, {}).get(resource, ())

    def lacks(self, call: Call) -> bool:
        """Whether a call is about a resource or verb that the server does not know."""
        path = unquote(call.path)
        asked = attributes_of(Request(method=call.method, path=path, query=call.query))
        return bool(asked.resource) and not self.has(
            _api_version(asked.group, path), asked.whole_resource, asked.verb
        )


def described(wheel: Path) -> Verbs:
    """Return what the description inside a wheel of the Python client names."""
    found: dict[str, dict[str, set[str]]] = {}
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if not name.startswith("kubernetes/client/api/"):
                continue
            text = archive.read(name).decode()
            for pattern in _CALLS:
                for each in pattern.finditer(text):
                    _note(found, each["method"], each["path"])
    return {
        api_version: {name: sorted(verbs) for name, verbs in sorted(resources.items())}
        for api_version, resources in sorted(found.items())
    }


def _note(found: dict[str, dict[str, set[str]]], method: str, path: str) -> None:
    asked = attributes_of(Request(method=method, path=path))
    if not asked.resource:  # a list of resources, groups or versions
        return
    resources = found.setdefault(_api_version(asked.group, path), {})
    resources.setdefault(asked.whole_resource, set()).add(asked.verb)


def _api_version(group: str, path: str) -> str:
    parts = path.split("/")
    return "/".join(parts[2:4]) if group else parts[2]


def _as_text(wheel: Path) -> str:
    """Return a file's text: a line for each resource."""
    serves = {
        api_version: {name: " ".join(verbs) for name, verbs in resources.items()}
        for api_version, resources in described(wheel).items()
    }
    return json.dumps({"source": f"PyPI {wheel.name}", "serves": serves}, indent=1) + "\n"


if __name__ == "__main__":
    sys.stdout.write(_as_text(Path(sys.argv[1])))
