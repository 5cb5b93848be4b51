"""Kubeconfig files and in-cluster accounts: what is presented to which server, and every fault.

The cases follow those of the official Python client's kubeconfig tests; left out are the
cloud-vendor auth providers, which are refused.
"""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from moorage.base.clock import ManualClock
from moorage.base.errors import KubeconfigError
from moorage.client.auth import incluster_access
from moorage.client.kubeconfig import find_access, load_kubeconfig
from moorage.client.kubeconfig_file import read_kubeconfig


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def config(
    cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **context: Any
) -> dict[str, Any]:
    return {
        "current-context": "ctx",
        "contexts": [{"name": "ctx", "context": {"cluster": "c", "user": "u", **context}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://host:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
    }


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


async def resolve(path: Path, *, context: str = "") -> dict[str, Any]:
    """Everything the transport would use, defaults left out."""
    access = find_access(str(path), context=context, clock=ManualClock(), environ={})
    credential = await access.credentials.credential()
    found = {
        "server": access.server,
        "ca": access.ca_pem,
        "insecure": access.insecure_skip_tls_verify,
        "tls_server_name": access.tls_server_name,
        "proxy": access.proxy_url,
        "namespace": access.namespace,
        "headers": dict(credential.headers),
        "certificate": credential.certificate_pem,
        "key": credential.key_pem,
    }
    return {key: value for key, value in found.items() if value}


USABLE = [
    pytest.param({}, {}, {}, id="no credentials at all"),
    pytest.param(
        {},
        {"token": "abc"},
        {"headers": {"Authorization": "Bearer abc"}},
        id="a token",
    ),
    pytest.param(
        {},
        {"tokenFile": "secrets/token"},
        {"headers": {"Authorization": "Bearer from-file"}},
        id="a token file beside the kubeconfig, its line end dropped",
    ),
    pytest.param(
        {},
        {"token": "stale", "tokenFile": "secrets/token"},
        {"headers": {"Authorization": "Bearer from-file"}},
        id="a token file wins over a token",
    ),
    pytest.param(
        {},
        {"username": "me", "password": "secret"},
        {"headers": {"Authorization": f"Basic {b64('me:secret')}"}},
        id="user name and password",
    ),
    pytest.param(
        {},
        {"client-certificate-data": b64("CERT"), "client-key-data": b64("KEY")},
        {"certificate": b"CERT", "key": b"KEY"},
        id="a client certificate inline",
    ),
    pytest.param(
        {},
        {"client-certificate": "secrets/cert", "client-key": "secrets/key"},
        {"certificate": b"cert file", "key": b"key file"},
        id="a client certificate in files, relative to the kubeconfig",
    ),
    pytest.param(
        {},
        {
            "client-certificate": "secrets/cert",
            "client-certificate-data": b64("CERT"),
            "client-key": "secrets/key",
            "client-key-data": b64("KEY"),
        },
        {"certificate": b"CERT", "key": b"KEY"},
        id="inline data wins over a file",
    ),
    pytest.param(
        {},
        {
            "token": "abc",
            "client-certificate-data": b64("CERT"),
            "client-key-data": b64("KEY"),
        },
        {"headers": {"Authorization": "Bearer abc"}, "certificate": b"CERT", "key": b"KEY"},
        id="token and certificate together",
    ),
    pytest.param(
        {"certificate-authority-data": b64("CA")}, {}, {"ca": b"CA"}, id="an authority inline"
    ),
    pytest.param(
        {"certificate-authority": "secrets/ca"}, {}, {"ca": b"ca file"}, id="an authority in a file"
    ),
    pytest.param(
        {"certificate-authority": "nowhere", "certificate-authority-data": b64("CA")},
        {},
        {"ca": b"CA"},
        id="an authority inline wins over a file",
    ),
    pytest.param({"insecure-skip-tls-verify": True}, {}, {"insecure": True}, id="no verification"),
    pytest.param(
        {"tls-server-name": "other"}, {}, {"tls_server_name": "other"}, id="another server name"
    ),
    pytest.param(
        {"proxy-url": "http://proxy:3128"}, {}, {"proxy": "http://proxy:3128"}, id="a proxy"
    ),
    pytest.param(
        {"server": "https://host:6443/prefix/"},
        {},
        {"server": "https://host:6443/prefix"},
        id="a server below a path",
    ),
    pytest.param(
        {},
        {"as": "jane", "as-uid": "7", "as-groups": ["dev"]},
        {
            "headers": {
                "Impersonate-User": "jane",
                "Impersonate-Uid": "7",
                "Impersonate-Group": "dev",
            }
        },
        id="impersonation",
    ),
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in ("token", "cert", "key", "ca"):
        text = "from-file\n" if name == "token" else f"{name} file"
        write(tmp_path / "secrets" / name, text)
    return tmp_path


@pytest.mark.parametrize(("cluster", "user", "expected"), USABLE)
async def test_the_meaning_of_a_kubeconfig_entry(home, cluster, user, expected):
    path = write(home / "config", config(cluster, user))
    assert await resolve(path) == {"server": "https://host:6443", **expected}


def test_a_kubeconfig_in_json_is_read_like_the_same_one_in_yaml(home):
    content = config()
    write(home / "yaml", content)
    (home / "json").write_bytes(msgspec.json.encode(content))
    assert read_kubeconfig(home / "json") == read_kubeconfig(home / "yaml")


async def test_the_context_chooses_cluster_user_and_namespace(home):
    content = config(user={"token": "one"}, namespace="first")
    content["contexts"].append({"name": "other", "context": {"cluster": "d", "namespace": "ns"}})
    content["clusters"].append({"name": "d", "cluster": {"server": "http://d"}})
    path = write(home / "config", content)
    assert await resolve(path) == {
        "server": "https://host:6443",
        "namespace": "first",
        "headers": {"Authorization": "Bearer one"},
    }
    assert await resolve(path, context="other") == {"server": "http://d", "namespace": "ns"}


FAULTS = [
    pytest.param("", "the kubeconfig is empty; write one", id="an empty file"),
    pytest.param("a: [", "not YAML", id="not YAML"),
    pytest.param(
        "users: [{name: u, user: {token: 12345}}]",
        r"Expected `str`, got `int` - at `\$\.users\[0\]\.user\.token`; quote values",
        id="a number where text should be",
    ),
    pytest.param("[]", "not a kubeconfig: Expected `object`, got `array`", id="a list"),
    pytest.param(
        {**config(), "current-context": ""}, "no current-context; name one", id="no context"
    ),
    pytest.param(
        {**config(), "current-context": "x"},
        'there is no context "x"; contexts there are: ctx',
        id="an unknown context",
    ),
    pytest.param(
        {**config(), "clusters": []},
        'context "ctx" names cluster "c", which is not there; the file has no clusters',
        id="an unknown cluster",
    ),
    pytest.param(
        {**config(), "users": None},
        'context "ctx" names user "u", which is not there; the file has no users',
        id="an unknown user",
    ),
    pytest.param(config({"server": ""}), 'cluster "c" has no server; add its URL', id="no server"),
    *(
        pytest.param(
            config({"server": server}),
            f'cluster "c": server {re.escape(repr(server))} is no URL; write one such as '
            "https://10.0.0.1:6443",
            id=f"a server that is no URL: {server}",
        )
        for server in ("http://[", "https://a:99999", "https://a:b", "ftp://a", "https://", ":")
    ),
    pytest.param(
        config({"certificate-authority": "nowhere"}),
        r'cluster "c": certificate-authority: cannot read .*/nowhere: No such file',
        id="an authority that is not there",
    ),
    pytest.param(
        config({"certificate-authority-data": "%%%"}),
        'cluster "c": certificate-authority-data is not base64',
        id="an authority that is not base64",
    ),
    pytest.param(
        config({"certificate-authority-data": b64("CA"), "insecure-skip-tls-verify": True}),
        "exclude each other; remove one",
        id="an authority that is not to be checked",
    ),
    pytest.param(
        config(user={"client-key-data": "a"}),
        'user "u": client-key without client-certificate; give both',
        id="a key alone",
    ),
    pytest.param(
        config(user={"client-certificate-data": "a", "client-key-data": "b"}),
        'user "u": client-certificate-data is not base64',
        id="a certificate that is not base64",
    ),
    pytest.param(
        config(user={"client-certificate": "nowhere", "client-key": "secrets/key"}),
        r'user "u": client-certificate: cannot read .*/nowhere',
        id="a certificate that is not there",
    ),
    pytest.param(
        config(user={"tokenFile": "nowhere"}),
        r'user "u": tokenFile: cannot read .*/nowhere: .*; check the path',
        id="a token file that is not there",
    ),
    pytest.param(
        config(user={"token": "a", "username": "b"}),
        r"more than one way to authenticate \(token, basic auth\); keep one",
        id="two ways to authenticate",
    ),
    pytest.param(
        config(user={"auth-provider": {"name": "gcp"}}),
        'auth-provider "gcp" is not supported, .* use its exec credential plugin',
        id="an auth provider",
    ),
    pytest.param(
        config(user={"as-groups": ["dev"]}), "as-groups without as", id="groups without a user"
    ),
    pytest.param(
        config(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}),
        'user "u": exec has no command',
        id="exec without a command",
    ),
    pytest.param(
        config(user={"exec": {"command": "x", "apiVersion": "v1alpha1"}}),
        'exec apiVersion "v1alpha1" is not supported; use client.authentication.k8s.io/v1 or',
        id="exec with an old version",
    ),
    pytest.param(
        config(user={"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1"}}),
        "exec interactiveMode is required",
        id="exec v1 without interactiveMode",
    ),
]


@pytest.mark.parametrize(("content", "message"), FAULTS)
async def test_faults_name_file_entry_and_remedy(home, content, message):
    path = write(home / "config", content)
    with pytest.raises(KubeconfigError, match=message) as caught:
        await resolve(path)
    assert str(home) in str(caught.value)


async def test_a_given_file_must_be_there(home):
    with pytest.raises(KubeconfigError, match="nowhere: cannot read the kubeconfig: No such file"):
        await resolve(home / "nowhere")


async def test_kubeconfig_lists_are_merged_first_file_first(home):
    first = write(home / "one" / "config", {"current-context": "ctx", "users": [USER]})
    second = write(home / "two" / "config", config(user={"token": "never"}))
    listed = os.pathsep.join([str(home / "missing"), str(first), "", str(second)])
    access = find_access(clock=ManualClock(), environ={"KUBECONFIG": listed, "HOME": str(home)})
    credential = await access.credentials.credential()
    assert (access.server, credential.headers) == (
        "https://host:6443",
        (("Authorization", "Bearer beside one"),),
    )


USER = {"name": "u", "user": {"tokenFile": "token"}}


@pytest.fixture(autouse=True)
def _token_beside_one(home: Path) -> None:
    write(home / "one" / "token", "beside one")


async def test_the_home_directory_is_the_last_place_for_a_kubeconfig(home):
    write(home / ".kube" / "config", config(user={"token": "home"}))
    access = find_access(clock=ManualClock(), environ={"HOME": str(home)})
    assert (await access.credentials.credential()).headers == (("Authorization", "Bearer home"),)


async def test_without_any_kubeconfig_the_error_says_what_to_do(home):
    with pytest.raises(KubeconfigError, match=r"no API server .*give --kubeconfig FILE"):
        find_access(clock=ManualClock(), environ={"HOME": str(home)})


def test_no_kubeconfig_is_loaded_when_none_of_the_files_exists(home):
    assert load_kubeconfig([home / "a", home / "b"], must_exist=False) is None


# --- rotation ------------------------------------------------------------------------------------


async def test_a_token_file_is_read_again_after_a_minute_and_after_a_401(home):
    clock = ManualClock()
    path = write(home / "config", config(user={"tokenFile": "secrets/token"}))
    source = find_access(str(path), clock=clock, environ={}).credentials
    seen = [await _authorization(source)]
    write(home / "secrets" / "token", "second")
    clock.advance(59)
    seen.append(await _authorization(source))
    clock.advance(1)
    seen.append(await _authorization(source))
    write(home / "secrets" / "token", "third")
    assert source.reject() is True
    seen.append(await _authorization(source))
    (home / "secrets" / "token").unlink()
    clock.advance(3600)
    seen.append(await _authorization(source))
    assert seen == [f"Bearer {t}" for t in ("from-file", "from-file", "second", "third", "third")]


async def test_a_certificate_file_is_read_again_after_five_minutes(home):
    clock = ManualClock()
    user = {"client-certificate": "secrets/cert", "client-key": "secrets/key"}
    path = write(home / "config", config(user=user))
    source = find_access(str(path), clock=clock, environ={}).credentials
    await source.credential()
    write(home / "secrets" / "cert", "new cert")
    clock.advance(299)
    assert (await source.credential()).certificate_pem == b"cert file"
    clock.advance(1)
    assert (await source.credential()).certificate_pem == b"new cert"


async def _authorization(source: Any) -> str:
    headers: dict[str, str] = dict((await source.credential()).headers)
    return headers["Authorization"]


# --- in a pod ------------------------------------------------------------------------------------

INSIDE = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def account(tmp_path: Path) -> Path:
    for name, text in (("token", "t\n"), ("ca.crt", "CA"), ("namespace", "kube-system\n")):
        write(tmp_path / "account" / name, text)
    return tmp_path / "account"


@pytest.mark.parametrize(
    ("host", "server"),
    [
        pytest.param("10.0.0.1", "https://10.0.0.1:443", id="IPv4"),
        pytest.param("fd00::1", "https://[fd00::1]:443", id="IPv6"),
    ],
)
async def test_service_account(account, host, server):
    environ = {**INSIDE, "KUBERNETES_SERVICE_HOST": host}
    access = incluster_access(environ, clock=ManualClock(), directory=account)
    assert access is not None
    assert (access.server, access.trusted_pem(), access.namespace) == (server, b"CA", "kube-system")
    assert await _authorization(access.credentials) == "Bearer t"


def test_outside_a_cluster_there_is_no_account(account):
    assert incluster_access({}, clock=ManualClock(), directory=account) is None


@pytest.mark.parametrize(
    "name", [pytest.param("token", id="token"), pytest.param("ca.crt", id="CA")]
)
def test_an_account_without_its_files_is_an_error(account, name):
    (account / name).unlink()
    with pytest.raises(KubeconfigError, match=f"cannot read .*/{name}"):
        incluster_access(INSIDE, clock=ManualClock(), directory=account)
