"""The bill of materials of a release, in CycloneDX: ``moorage-VERSION.cdx.json``.

Every locked package is a component. Its scope says what it is there for: ``required`` at run time,
``optional`` for an extra, ``excluded`` for development. Equal releases have equal bytes.
"""

from __future__ import annotations

import json
import tomllib
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from tools.release.packages import (
    ROOT,
    Locked,
    Package,
    Scope,
    Vendored,
    locked,
    reachable,
    recorded,
    scopes,
    vendored,
)


def bill(version: str, date: str, files: Mapping[str, str]) -> str:
    """Return the bill of materials of a release.

    Parameters
    ----------
    version
        ``MAJOR.MINOR.PATCH``.
    date
        ``YYYY-MM-DD``.
    files
        The SHA-256 of each released file, by name.
    """
    entries, packages = locked(), recorded()
    root = Component(
        name="moorage",
        version=version,
        type=ComponentType.APPLICATION,
        bom_ref=f"moorage=={version}",
        purl=PackageURL("pypi", None, "moorage", version),
        licenses=[LicenseExpression("Apache-2.0")],
        external_references=[
            _file(name, [digest], comment="a released file") for name, digest in files.items()
        ],
    )
    scope = scopes(packages)
    parts = {each.pin: _component(each, packages[each.pin], scope) for each in entries}
    shipped = [_shipped(each) for each in vendored()]
    made = Bom(components=[*parts.values(), *shipped])
    made.metadata.component = root
    made.metadata.timestamp = datetime.fromisoformat(date).replace(tzinfo=UTC)
    for pin, component in parts.items():
        needs = packages[pin].requires
        made.register_dependency(
            component, _named(parts, (each for e in needs for each in needs[e]))
        )
    made.register_dependency(root, [*_direct(parts), *shipped])
    made.serial_number = uuid.uuid5(
        uuid.NAMESPACE_URL, json.dumps(["moorage", version, date, dict(files), sorted(parts)])
    )
    text: str = JsonV1Dot6(made).output_as_string(indent=1)
    return f"{text}\n"


def _direct(parts: Mapping[str, Component]) -> list[Component]:
    """Return the packages that moorage itself names: at run time, for extras, for development."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists: list[list[str]] = [project["dependencies"], *project["optional-dependencies"].values()]
    return _named(parts, (each for wanted in lists for each in wanted))


def _named(parts: Mapping[str, Component], wanted: Iterable[str]) -> list[Component]:
    """Return every version of the packages that requirements name."""
    names = {name for each in wanted for name in reachable([each], {})}
    return [part for pin, part in parts.items() if pin.partition("==")[0] in names]


def _component(each: Locked, package: Package, scope: Mapping[str, Scope]) -> Component:
    return Component(
        name=each.name,
        version=each.version,
        type=ComponentType.LIBRARY,
        bom_ref=each.pin,
        scope=ComponentScope(scope[each.name]),
        purl=PackageURL("pypi", None, each.name, each.version),
        licenses=[LicenseExpression(package.licence)],
        external_references=[
            _file(
                f"https://pypi.org/project/{each.name}/{each.version}/",
                each.sha256,
                comment="the files of which one is installed",
            )
        ],
    )


def _shipped(each: Vendored) -> Component:
    return Component(
        name=each.package,
        version=each.version,
        type=ComponentType.LIBRARY,
        bom_ref=f"npm:{each.package}=={each.version}",
        scope=ComponentScope.REQUIRED,
        purl=PackageURL("npm", None, each.package, each.version),
        licenses=[LicenseExpression(each.licence)],
        external_references=[_file(each.from_, [each.sha256], comment="its files are in moorage")],
    )


def _file(url: str, digests: Iterable[str], *, comment: str) -> ExternalReference:
    return ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(url),
        comment=comment,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in digests],
    )


def components(text: str) -> list[dict[str, Any]]:
    """Return the components of a bill of materials as plain values."""
    found: list[dict[str, Any]] = json.loads(text)["components"]
    return found
