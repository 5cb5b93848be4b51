"""The authorities that the cluster publishes, as read from their ConfigMap.

Left out: that changes are followed and count (``test_port``), bundles in files (``test_tls``).
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base.certificates import Authority
from moorage.base.clock import ManualClock, SystemClock
from moorage.base.errors import ApiError, DecodeError
from moorage.base.rng import Streams
from moorage.service.serving.trust import (
    Bundle,
    ClusterTrust,
    ProxyNames,
    Published,
    Trust,
    bundle_of,
)
from scheduler.tests.client.fakes import ScriptedTransport, answer, failure

USERS = Authority(SystemClock()).certificate.decode()
PROXIES = Authority(SystemClock()).certificate.decode()
WHOLE = {
    "client-ca-file": USERS,
    "requestheader-client-ca-file": PROXIES,
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-group-headers": '["X-Remote-Group", " X-Group "]',
    "requestheader-uid-headers": '["X-Remote-Uid"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    "requestheader-allowed-names": '["front-proxy-client"]',
}
NAMES = ProxyNames(
    ("X-Remote-User",),
    ("X-Remote-Group", "X-Group"),
    ("X-Remote-Uid",),
    ("X-Remote-Extra-",),
    ("front-proxy-client",),
)
TRUSTED = Trust(bundle_of(USERS), bundle_of(PROXIES), NAMES)


def cluster(*script: Any) -> ClusterTrust:
    rng = Streams(1).stream("watch")
    return ClusterTrust(ScriptedTransport(*script), clock=ManualClock(), rng=rng)


@pytest.mark.parametrize(
    ("data", "trust"),
    [
        pytest.param(WHOLE, TRUSTED, id="users and proxies"),
        pytest.param(
            {"client-ca-file": USERS}, Trust(bundle_of(USERS)), id="a server without proxies"
        ),
        pytest.param({}, Trust(), id="nothing published"),
        pytest.param(
            {"client-ca-file": f"# two\n{USERS}\n{PROXIES}"},
            Trust(
                Bundle(
                    bundle_of(USERS).pem + bundle_of(PROXIES).pem,
                    bundle_of(USERS).certificates | bundle_of(PROXIES).certificates,
                )
            ),
            id="two authorities of users, with a remark",
        ),
    ],
)
async def test_the_configmap_is_read(data: dict[str, str], trust: Trust) -> None:
    found = cluster(answer({"metadata": {"name": "x"}, "data": data}))
    await found.read_config_map()
    assert found.trust == trust


@pytest.mark.parametrize("key", [key for key in WHOLE if not key.endswith("-file")])
async def test_names_that_cannot_be_read_trust_no_proxy_but_the_last_ones(key: str) -> None:
    broken = Published(data={**WHOLE, key: "front-proxy-client"})
    found = cluster()
    found.on_add(broken)
    assert found.trust == Trust(TRUSTED.clients)
    found.on_add(Published(data=WHOLE))
    found.on_add(broken)
    assert found.trust == TRUSTED


async def test_authorities_that_cannot_be_read_leave_the_last_ones_in_force() -> None:
    found = cluster()
    whole = Published(data=WHOLE)
    found.on_add(whole)
    found.on_update(whole, Published(data={**WHOLE, "client-ca-file": "nothing"}))
    assert found.trust == TRUSTED
    found.on_undecodable(("kube-system", "x"), DecodeError("no text"))
    assert found.trust == TRUSTED
    found.on_delete(whole, missed=False)
    assert found.trust == TRUSTED


async def test_a_configmap_that_may_not_be_read_is_an_error() -> None:
    found = cluster(answer(failure(403, "Forbidden", "no"), status=403))
    with pytest.raises(ApiError, match="no"):
        await found.read_config_map()
