"""``/statusz`` and ``/flagz``: the running program, its start time, and its flags.

`health` serves both pages: as plain text, or as an object for programs that ask for an object.

Notes
-----
Kubernetes v1.36 ``apiserver/pkg/server/statusz`` and ``flagz``. Upstream draws the text between a
name and its value at random; here it is always ``:`` or ``=``. A line tells of Python instead of
Go.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from moorage.api.codec import encode
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.version import __version__
from moorage.service.attempts.failure_status import failure_status
from moorage.service.process.health import Page, PageMaker
from moorage.service.process.metrics import PLAYED

_COMPONENT: Final = "kube-scheduler"
_GROUP: Final = "config.k8s.io"
_NEWEST: Final = "v1beta1"
_DEPRECATED: Final = "v1alpha1"
_JSON, _YAML, _TEXT = "application/json", "application/yaml", "text/plain"
_HEAD: Final = (
    f"\n{_COMPONENT} %s\n"
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility "
    "guarantees and is for debugging purposes only.\n"
)


class PageForm(msgspec.Struct, frozen=True):
    """The form in which a page is asked for.

    Parameters
    ----------
    media_type
        Of the answer.
    version
        Of the object; "" for plain text.
    """

    media_type: str
    version: str = ""


def statusz(clock: Clock, paths: Sequence[str], *, emulated: str) -> PageMaker:
    """Return the page about the running program.

    Parameters
    ----------
    clock
        Its present time counts as the start of the process.
    paths
        Other paths that can be read.
    emulated
        The emulated version of Kubernetes.
    """
    started_ns, begun_ns = clock.now_ns(), clock.monotonic_ns()
    played = PLAYED[emulated].removeprefix("v")
    folders = sorted({f"/{path.split('/')[1]}" for path in paths})

    def up_seconds() -> int:
        return (clock.monotonic_ns() - begun_ns) // NS_PER_SECOND

    def text() -> str:
        up = up_seconds()
        lines = {
            "Started": f"{_moment(started_ns):%a %b %e %H:%M:%S UTC %Y}",
            "Up": f"{up // 3600} hr {up // 60 % 60:02} min {up % 60:02} sec",
            "Python version": platform.python_version(),
            "Moorage version": __version__,
            "Binary version": played,
            "Emulation version": emulated,
            "Paths": " ".join(folders),
        }
        return _HEAD % "statusz" + "\n" + "".join(f"{k}: {told}\n" for k, told in lines.items())

    def fields() -> dict[str, Any]:
        return {
            "startTime": f"{_moment(started_ns):%Y-%m-%dT%H:%M:%SZ}",
            "uptimeSeconds": up_seconds(),
            "binaryVersion": played,
            "emulationVersion": emulated,
            "paths": folders,
        }

    return _page("Statusz", text, fields)


def flagz(flags: Mapping[str, str]) -> PageMaker:
    """Return the page of the flags in force, by name."""
    values = dict(sorted(flags.items()))

    def text() -> str:
        return _HEAD % "flagz" + "\n" + "".join(f"{name}={each}\n" for name, each in values.items())

    return _page("Flagz", text, lambda: {"flags": values})


def negotiated(accept: str, kind: str) -> PageForm | None:
    """Return the reader's preferred form among those offered; None if the reader takes no form.

    Parameters
    ----------
    accept
        The media types accepted, as in HTTP; "" for any.
    kind
        The object's kind; the object is sent only to readers that name it with group and version.
    """
    clauses = [_clause(each) for each in (accept or "*/*").split(",")]
    for media_type, options in sorted(clauses, key=_dislike):
        if media_type in ("*/*", "text/*", _TEXT):
            return PageForm(_TEXT)
        known = options.get("v") in (_NEWEST, _DEPRECATED)
        named = (options.get("g"), options.get("as")) == (_GROUP, kind)
        if media_type in (_JSON, _YAML) and named and known:
            return PageForm(media_type, options["v"])
    return None


def _clause(text: str) -> tuple[str, dict[str, str]]:
    media_type, *parameters = (part.strip() for part in text.split(";"))
    pairs = (parameter.partition("=") for parameter in parameters)
    return media_type, {name: value for name, _, value in pairs}


def _dislike(clause: tuple[str, Mapping[str, str]]) -> float:
    try:
        return -float(clause[1].get("q", "1"))
    except ValueError:
        return 0.0


def _page(kind: str, text: Callable[[], str], fields: Callable[[], Mapping[str, Any]]) -> PageMaker:
    async def page(accept: str) -> Page:
        form = negotiated(accept, kind)
        if form is None:
            return _not_acceptable()
        if not form.version:
            return Page(text().encode())
        content = {
            "kind": kind,
            "apiVersion": f"{_GROUP}/{form.version}",
            "metadata": {"name": _COMPONENT},
            **fields(),
        }
        if form.media_type == _JSON:
            body = encode(content)
        else:
            from moorage.api.yaml_text import write_yaml  # takes time to import

            body = write_yaml(content, sort_keys=True).encode()
        deprecated = (
            f'299 - "This version of the {kind.lower()} endpoint is deprecated. '
            'Please use a newer version."'
        )
        headers = {"Warning": deprecated} if form.version == _DEPRECATED else {}
        return Page(body, form.media_type, headers=headers)

    return page


def _not_acceptable() -> Page:
    text = f"only the following media types are accepted: {_JSON}, {_YAML}, {_TEXT}"
    return Page(failure_status(406, "NotAcceptable", text), _JSON, status=406)


def _moment(time_ns: int) -> datetime:
    return datetime.fromtimestamp(time_ns // NS_PER_SECOND, UTC)
