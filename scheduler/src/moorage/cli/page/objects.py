"""Answers that no scheduler has: Events and quotas, read from the API server for a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from moorage.api.quantity import parse_quantity
from moorage.api.resources import ELASTIC_QUOTAS, RESOURCE_QUOTAS
from moorage.base.errors import ApiError, NotFoundError, UsageError
from moorage.cli.reported_events import ReportedEvent, events_about, reported_event
from moorage.client.writes import Client
from moorage.dashboard.source import Answered, Source

_EVENTS_MOST: Final = 100


class QuotaAmount(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of one resource in a quota.

    Parameters
    ----------
    resource
        As the quota names it.
    used, most, guaranteed
        Quantities; "" where the quota tells none.
    part
        The used part of the most, from 0; None without a most.
    """

    resource: str
    used: str
    most: str
    guaranteed: str
    part: float | None


class ShownQuota(msgspec.Struct, frozen=True, kw_only=True):
    """A quota of a namespace, ResourceQuota or ElasticQuota."""

    kind: str
    namespace: str
    name: str
    amounts: tuple[QuotaAmount, ...]


class WithObjects:
    """A source that answers about Events and quotas as well.

    Parameters
    ----------
    source
        Answers every other question.
    client
        Reads the API, with the rights of the page.
    """

    def __init__(self, source: Source, client: Client) -> None:
        self._source = source
        self._client = client

    async def ask(self, path: str, query: Mapping[str, str], body: bytes = b"") -> Answered:
        """Ask a question; a Status says why the server does not list what it needs."""
        try:
            if path == "/events":
                return _answer({"events": await self._events(query.get("pod", ""))})
            if path == "/quotas":
                return _answer({"quotas": await self._quotas()})
        except UsageError as error:
            return _refused(400, str(error))
        except ApiError as error:
            return _refused(error.code, str(error))
        return await self._source.ask(path, query, body)

    async def _events(self, pod: str) -> list[ReportedEvent]:
        """Return the newest Events about a pod, the newest first."""
        namespace, slash, name = pod.partition("/")
        if not (namespace and slash and name) or "/" in name:
            raise UsageError(f"pod: {pod!r}: write NAMESPACE/NAME")
        found = await events_about(self._client, "Pod", name, namespace=namespace)
        return [reported_event(each) for each in reversed(found[-_EVENTS_MOST:])]

    async def _quotas(self) -> list[ShownQuota]:
        """Return the quotas of every namespace."""
        quotas: list[ShownQuota] = []
        listed: Any = await self._client.list(RESOURCE_QUOTAS)
        for each in listed["items"]:
            status = each.get("status") or {}
            most = status.get("hard") or each["spec"].get("hard") or {}
            quotas.append(_quota("ResourceQuota", each, most=most, guaranteed={}))
        try:
            listed = await self._client.list(ELASTIC_QUOTAS)
        except NotFoundError:
            return quotas  # the server has no such kind
        for each in listed["items"]:
            spec = each.get("spec") or {}
            bounds = {"most": spec.get("max") or {}, "guaranteed": spec.get("min") or {}}
            quotas.append(_quota("ElasticQuota", each, **bounds))
        return quotas


def _quota(
    kind: str, quota: Any, *, most: Mapping[str, Any], guaranteed: Mapping[str, Any]
) -> ShownQuota:
    used = (quota.get("status") or {}).get("used") or {}
    return ShownQuota(
        kind=kind,
        namespace=quota["metadata"]["namespace"],
        name=quota["metadata"]["name"],
        amounts=tuple(
            QuotaAmount(
                resource=name,
                used=str(used.get(name, "")),
                most=str(most.get(name, "")),
                guaranteed=str(guaranteed.get(name, "")),
                part=_part(used.get(name), most.get(name)),
            )
            for name in sorted({*most, *guaranteed})
        ),
    )


def _part(used: Any, most: Any) -> float | None:
    if used is None or most is None:
        return None
    bound = parse_quantity(most)
    return parse_quantity(used) / bound if bound else 1.0


def _answer(content: object) -> Answered:
    return Answered(msgspec.json.encode(content))


def _refused(code: int, message: str) -> Answered:
    status = {"kind": "Status", "status": "Failure", "message": message, "code": code}
    return Answered(msgspec.json.encode(status), code)
