"""HTTP extenders in a configuration: their types and checks.

Part of `types` and of `validation`; `merge` reads which resources the extenders look after. Source:
kubernetes v1.36 ``staging/src/k8s.io/kube-scheduler/config/v1`` and
``pkg/scheduler/apis/config/validation``.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from moorage.api.names import is_extended_resource, qualified_name_faults
from moorage.api.naming import json_name
from moorage.api.schedules.durations import parse_duration
from moorage.config.strict import invalid

_NS_PER_SECOND: Final = 1_000_000_000

DEFAULT_TIMEOUT_SECONDS: Final = 5.0
"""Limit of one call where ``httpTimeout`` is unset or 0."""


class ExtenderTLSConfig(
    msgspec.Struct, frozen=True, kw_only=True, rename=json_name, forbid_unknown_fields=True
):
    """The trust settings for an extender, and the scheduler's own certificate."""

    insecure: bool = False
    """Do not check the extender's certificate."""
    server_name: str = ""
    """Name to check the certificate against; empty: the host of the URL."""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str = ""
    """Base64 of PEM, as `key_data` and `ca_data`; these fields take precedence over the files."""
    key_data: str = ""
    ca_data: str = ""


class ManagedResource(
    msgspec.Struct, frozen=True, kw_only=True, rename=json_name, forbid_unknown_fields=True
):
    """An extended resource the extender looks after."""

    name: str = ""
    ignored_by_scheduler: bool = False
    """NodeResourcesFit leaves the resource out, in every profile."""


class Extender(
    msgspec.Struct, frozen=True, kw_only=True, rename=json_name, forbid_unknown_fields=True
):
    """An HTTP extender; an empty verb means that the extender lacks it."""

    url_prefix: str = msgspec.field(default="", name="urlPrefix")
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    """Multiplier of the extender's scores; positive where the extender prioritizes."""
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLSConfig | None = msgspec.field(default=None, name="tlsConfig")
    http_timeout: str = msgspec.field(default="", name="httpTimeout")
    """Go duration of one call; unset and 0 mean 5 s."""
    node_cache_capable: bool = False
    """Nodes are sent by name, not as whole objects."""
    managed_resources: list[ManagedResource] = []
    """The extender is asked about pods that request one of these; empty: about every pod."""
    ignorable: bool = False
    """The attempt goes on without the extender when the extender fails."""

    @property
    def timeout_seconds(self) -> float:
        """Limit of one call."""
        seconds = parse_duration(self.http_timeout) / _NS_PER_SECOND if self.http_timeout else 0.0
        return seconds or DEFAULT_TIMEOUT_SECONDS


def ignored_resources(extenders: Sequence[Extender]) -> tuple[str, ...]:
    """Return the resources extenders look after alone, which NodeResourcesFit must not judge."""
    return tuple(
        resource.name
        for extender in extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )


def extender_faults(extenders: Sequence[Extender]) -> Iterator[str]:
    """Yield every fault of the extenders as field errors."""
    names: set[str] = set()
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        if not extender.url_prefix.startswith(("http://", "https://")):
            detail = "must be an http or https URL"
            yield invalid(f"{path}.urlPrefix", extender.url_prefix, detail)
        if extender.prioritize_verb and extender.weight <= 0:
            detail = "must have a positive weight applied to it"
            yield invalid(f"{path}.weight", extender.weight, detail)
        yield from _timeout_faults(path, extender)
        yield from _tls_faults(path, extender)
        for position, resource in enumerate(extender.managed_resources):
            where = f"{path}.managedResources[{position}].name"
            yield from _resource_faults(where, resource.name)
            if resource.name in names:
                yield invalid(where, resource.name, "duplicate extender managed resource name")
            names.add(resource.name)
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        found = f"found {binders} extenders implementing bind"
        yield invalid("extenders", found, "only one extender can implement bind")


def _resource_faults(path: str, name: str) -> Iterator[str]:
    faults = qualified_name_faults(name)
    for fault in faults:
        yield invalid(path, name, fault)
    if not faults and not is_extended_resource(name):
        yield invalid(path, name, "is an invalid extended resource name")


def _timeout_faults(path: str, extender: Extender) -> Iterator[str]:
    try:
        negative = parse_duration(extender.http_timeout or "0s") < 0
    except ValueError as error:
        yield invalid(f"{path}.httpTimeout", extender.http_timeout, str(error))
        return
    if negative:
        yield invalid(f"{path}.httpTimeout", extender.http_timeout, "must not be negative")


def _tls_faults(path: str, extender: Extender) -> Iterator[str]:
    tls = extender.tls_config
    if tls is None:
        return
    where = f"{path}.tlsConfig"
    for name, text in (
        ("certData", tls.cert_data),
        ("keyData", tls.key_data),
        ("caData", tls.ca_data),
    ):
        try:
            base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            # The value may be a key: it is not shown.
            yield f"{where}.{name}: Invalid value: must be base64"
    if tls.insecure and (tls.ca_data or tls.ca_file):
        detail = "specifying a root certificates file with the insecure flag is not allowed"
        yield invalid(f"{where}.insecure", tls.insecure, detail)
    if bool(tls.cert_data or tls.cert_file) != bool(tls.key_data or tls.key_file):
        yield f"{where}: Required value: certificate and key, or neither"
