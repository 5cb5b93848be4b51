"""The pages ``/statusz`` and ``/flagz``: in what form, and what they say.

The table of forms is that of kubernetes v1.36 test/integration/serving (kube-scheduler). Left out:
the port they are served on (``scheduler/tests/service/test_health``).
"""

from __future__ import annotations

import json
import platform

import pytest
import yaml

from moorage import __version__
from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.service.process.health import Page
from moorage.service.process.zpages import PageForm, flagz, negotiated, statusz

PARAMETERS = ";v=%s;g=config.k8s.io;as=Statusz"
BETA, ALPHA = (f"application/json{PARAMETERS % version}" for version in ("v1beta1", "v1alpha1"))
TEXT = PageForm("text/plain")
WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility "
    "guarantees and is for debugging purposes only.\n\n"
)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        pytest.param("", TEXT, id="no Accept header: plain text"),
        pytest.param("text/plain", TEXT, id="plain text"),
        pytest.param("text/plain;charset=utf-8", TEXT, id="plain text with a charset"),
        pytest.param("*/*", TEXT, id="any media type: plain text"),
        pytest.param(BETA, PageForm("application/json", "v1beta1"), id="an object"),
        pytest.param(
            f"application/yaml{PARAMETERS % 'v1beta1'}",
            PageForm("application/yaml", "v1beta1"),
            id="an object in YAML",
        ),
        pytest.param(
            f"{ALPHA},{BETA}",
            PageForm("application/json", "v1alpha1"),
            id="the older version is preferred",
        ),
        pytest.param(
            f"{BETA},{ALPHA}",
            PageForm("application/json", "v1beta1"),
            id="the newer version is preferred",
        ),
        pytest.param(
            f"{ALPHA};q=0.1, {BETA};q=0.9",
            PageForm("application/json", "v1beta1"),
            id="new preferred",
        ),
        pytest.param("application/xml", None, id="XML"),
        pytest.param("application/json", None, id="JSON without a kind"),
        pytest.param(
            "application/json;v=v1beta1;g=config.k8s.io", None, id="an object without a kind"
        ),
        pytest.param(BETA.replace("Statusz", "Flagz"), None, id="another kind"),
        pytest.param(BETA.replace("v1beta1", "foo"), None, id="no such version"),
        pytest.param(f"{BETA.replace('v1beta1', 'foo')},*/*", TEXT, id="no such version, or any"),
        pytest.param(BETA.replace("json", "cbor"), None, id="CBOR"),
    ],
)
def test_the_accept_header_chooses_the_form_of_a_page(accept, expected) -> None:
    assert negotiated(accept, "Statusz") == expected


async def test_statusz_is_served_in_plain_text() -> None:
    clock = ManualClock(1_729_112_623 * NS_PER_SECOND)
    page = statusz(clock, ["/readyz", "/metrics", "/metrics/slis", "/configz"], emulated="1.36")
    clock.advance(3_976)
    assert await page("") == Page(
        (
            f"\nkube-scheduler statusz\n{WARNING}"
            "Started: Wed Oct 16 21:03:43 UTC 2024\n"
            "Up: 1 hr 06 min 16 sec\n"
            f"Python version: {platform.python_version()}\n"
            f"Moorage version: {__version__}\n"
            "Binary version: 1.36.2\n"
            "Emulation version: 1.36\n"
            "Paths: /configz /metrics /readyz\n"
        ).encode()
    )


async def test_statusz_names_the_emulated_version() -> None:
    page = statusz(ManualClock(), ["/readyz"], emulated="1.37")
    assert b"Binary version: 1.37.0\nEmulation version: 1.37\n" in (await page("")).body


@pytest.mark.parametrize("media_type", ["application/json", "application/yaml"])
async def test_statusz_is_served_as_an_object(media_type: str) -> None:
    clock = ManualClock(1_729_112_623 * NS_PER_SECOND)
    page = statusz(clock, ["/readyz"], emulated="1.36")
    clock.advance(16)
    told = await page(BETA.replace("application/json", media_type))
    read = json.loads if media_type == "application/json" else yaml.safe_load
    assert (told.content_type, told.status, told.headers) == (media_type, 200, {})
    assert read(told.body) == {
        "kind": "Statusz",
        "apiVersion": "config.k8s.io/v1beta1",
        "metadata": {"name": "kube-scheduler"},
        "startTime": "2024-10-16T21:03:43Z",
        "uptimeSeconds": 16,
        "binaryVersion": "1.36.2",
        "emulationVersion": "1.36",
        "paths": ["/readyz"],
    }


async def test_flagz_lists_the_flags() -> None:
    page = flagz({"v": "4", "leader-elect": "true"})
    assert (await page("text/plain")).body.decode() == (
        f"\nkube-scheduler flagz\n{WARNING}leader-elect=true\nv=4\n"
    )
    told = await page(ALPHA.replace("Statusz", "Flagz"))
    assert json.loads(told.body) == {
        "kind": "Flagz",
        "apiVersion": "config.k8s.io/v1alpha1",
        "metadata": {"name": "kube-scheduler"},
        "flags": {"leader-elect": "true", "v": "4"},
    }
    assert told.headers == {
        "Warning": '299 - "This version of the flagz endpoint is deprecated. '
        'Please use a newer version."'
    }


async def test_an_unknown_form_of_a_page_is_refused_as_by_the_api() -> None:
    told = await flagz({})("application/xml")
    assert told.status == 406
    assert json.loads(told.body) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "only the following media types are accepted: application/json, "
        "application/yaml, text/plain",
        "reason": "NotAcceptable",
        "code": 406,
    }
