"""Each command that reads a file reads the forms in which people have such files.

Objects come as kubectl, editors and shells write them; one table has every command and every form.
Configurations and kubeconfigs are one document each, and a scenario is one as well. No server runs:
a command that writes is seen by its calls.

Not covered: what is no such file (``scheduler/tests/api/test_manifest_text.py``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from moorage.base.errors import TransportError
from moorage.client.http_transport import HttpTransport
from moorage.nodeshapes.templates import load_nodes
from tests.cli.conftest import Type

Manifest = dict[str, Any]

AMOUNTS = {"cpu": "4", "memory": "8Gi", "pods": "10"}
NODES: Final[list[Manifest]] = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": AMOUNTS, "capacity": AMOUNTS},
    }
    for name in ("n1", "n2")
]
PODS: Final[list[Manifest]] = [
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "uid": name, "annotations": {"said": "über"}},
        "spec": {
            "containers": [
                {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}},
            ]
        },
    }
    for name in ("p1", "p2")
]
CONFIGURATION: Final[Manifest] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}},
        },
        {"schedulerName": "über"},
    ],
}
OLD_CONFIGURATION = {**CONFIGURATION, "apiVersion": "kubescheduler.config.k8s.io/v1beta3"}
KUBECONFIG: Final[Manifest] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "über",
    "contexts": [{"name": "über", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://server"}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
}
SCENARIO: Final[Manifest] = {"steps": [{"cordon": "n1"}], "note": "über"}
SIMULATION: Final[Manifest] = {
    "apiVersion": "moorage.dev/v1alpha1",
    "kind": "Simulation",
    "name": "über",
    "nodes": [{"file": "nodes.json"}],
    "pods": [{"file": "pods.json"}],
}


def as_json(value: object, **how: Any) -> str:
    return json.dumps(value, ensure_ascii=False, **how)


def as_yaml(value: object) -> str:
    return str(yaml.safe_dump(value, allow_unicode=True))


def typed_list(objects: Sequence[Manifest]) -> Manifest:
    """Return a typed list whose items name no kind, as the API itself writes it."""
    first = objects[0]
    items = [{k: v for k, v in each.items() if k not in {"apiVersion", "kind"}} for each in objects]
    return {"apiVersion": first["apiVersion"], "kind": f"{first['kind']}List", "items": items}


def of_any(objects: Sequence[Manifest]) -> Manifest:
    return {"apiVersion": "v1", "kind": "List", "items": list(objects)}


Form = Callable[[Sequence[Manifest]], str]
OF_ONE: Final[dict[str, Form]] = {
    "JSON": lambda some: "".join(as_json(each, indent=2) for each in some),
    "YAML with an empty document at the end": lambda some: (
        "---\n".join(map(as_yaml, some)) + "---\n"
    ),
    "YAML below a comment and empty documents": lambda some: (
        "# made by hand\n---\n---\n" + "---\n---\n# none\n---\n".join(map(as_yaml, some))
    ),
    "YAML with the line ends of Windows": lambda some: "---\n".join(map(as_yaml, some)).replace(
        "\n", "\r\n"
    ),
    "JSON with tabs as a YAML document": lambda some: (
        "---\n" + "\n---\n".join(as_json(each, indent="\t") for each in some)
    ),
}
OF_SEVERAL: Final[dict[str, Form]] = OF_ONE | {
    "JSON lines": lambda some: "\n".join(map(as_json, some)) + "\n",
    "JSON lines of Windows, with null": lambda some: "\r\nnull\r\n".join(map(as_json, some)),
    "JSON objects one after another": lambda some: "".join(map(as_json, some)),
    "an array": lambda some: as_json(list(some), indent=2),
    "a List": lambda some: as_json(of_any(some)),
    "a List in YAML": lambda some: as_yaml(of_any(some)),
    "a typed list": lambda some: as_json(typed_list(some)),
    "a typed list in YAML": lambda some: as_yaml(typed_list(some)),
}
PLAIN = "JSON"
ENCODINGS: Final[dict[str, Callable[[str], bytes]]] = {
    "UTF-8": lambda text: text.encode(),
    "UTF-8 with a mark": lambda text: text.encode("utf-8-sig"),
    "UTF-16, as PowerShell writes it": lambda text: b"\xff\xfe" + text.encode("utf-16-le"),
    "UTF-16, the other way round": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
}

CLUSTER = ("--from", "cluster.json")
JSON = ("-o", "json")
TO = ("--kubeconfig", "kubeconfig.json")
OBJECT_READERS: Final[dict[str, tuple[tuple[str, ...], list[Manifest]]]] = {
    "apply -f": (("apply", "-f", "FILE", *TO), PODS),
    "delete -f": (("delete", "-f", "FILE", *TO), PODS),
    "snapshot load": (("snapshot", "load", "FILE", "--dry-run", *TO), PODS),
    "what-if --apply": (("what-if", "--apply", "FILE", *CLUSTER), PODS),
    "what-if --from": (("what-if", "--cordon", "n1", "--from", "FILE"), NODES),
    "capacity --mix": (("capacity", "--mix", "FILE", *CLUSTER, *JSON), PODS),
    "capacity -f": (("capacity", "-f", "FILE", *CLUSTER, *JSON), PODS[:1]),
    "capacity --from": (("capacity", "-f", "pods.json", "--from", "FILE"), NODES),
    "explain --from": (("explain", "pod", "p1", "--from", "FILE"), PODS),
    "simulate --pods": (("simulate", "--nodes", "nodes.json", "--pods", "FILE", *JSON), PODS),
    "simulate --nodes": (("simulate", "--nodes", "FILE", "--pods", "pods.json", *JSON), NODES),
    "plot": (("plot", "FILE", "--to", "picture.svg"), NODES),
}
DOCUMENT_READERS: Final[dict[str, tuple[tuple[str, ...], list[Manifest]]]] = {
    "config check": (("config", "check", "FILE"), [CONFIGURATION]),
    "config convert": (("config", "convert", "FILE"), [OLD_CONFIGURATION]),
    "what-if --config": (("what-if", "--config", "FILE", *CLUSTER), [CONFIGURATION]),
    "capacity --running-config": (
        ("capacity", "-f", "pods.json", "--most", "20", "--running-config", "FILE", *CLUSTER),
        [CONFIGURATION],
    ),
    "explain --config": (
        ("explain", "pod", "p0", "--config", "FILE", "--from", "pods.json"),
        [CONFIGURATION],
    ),
    "simulate --config": (
        ("simulate", "--nodes", "nodes.json", "--pods", "pods.json", "--config", "FILE", *JSON),
        [CONFIGURATION],
    ),
    "simulate": (("simulate", "FILE", *JSON), [SIMULATION]),
    "what-if -f": (("what-if", "-f", "FILE", *CLUSTER), [SCENARIO]),
    "--kubeconfig": (("get", "pods", "--kubeconfig", "FILE"), [KUBECONFIG]),
}


_EXPECTED: dict[tuple[str, ...], Any] = {}
"""What a command does with the plain form, by its words: worked out once for all forms."""


@pytest.fixture
def read(bare: Type, monkeypatch: pytest.MonkeyPatch) -> Callable[..., object]:
    """Type a command with a file; return what it says, and the calls that it makes."""
    calls: list[tuple[str, str, str]] = []

    async def request(self: HttpTransport, call: Any, *_: object, **__: object) -> Any:
        calls.append((call.method, call.path, (call.body or b"").decode()))
        raise TransportError("no server runs in this test")

    monkeypatch.setattr(HttpTransport, "request", request)
    pod = {**PODS[0], "metadata": {"name": "p0", "uid": "p0"}}
    Path("pods.json").write_text(as_json(pod))
    Path("nodes.json").write_text(as_json(of_any(NODES)))
    Path("cluster.json").write_text(as_json(of_any([*NODES, pod])))
    Path("kubeconfig.json").write_text(as_json(KUBECONFIG))

    def type_(words: Sequence[str], content: bytes) -> object:
        calls.clear()
        Path("FILE").write_bytes(content)
        result = bare(*words)
        return result.exit_code, result.stdout, result.stderr, tuple(calls)

    return type_


def _params(
    readers: dict[str, tuple[tuple[str, ...], list[Manifest]]], forms: dict[str, Form]
) -> list[Any]:
    """Return every reader with every form in UTF-8, and with every encoding of one form."""
    plain = next(iter(ENCODINGS))
    cells = [(form, plain) for form in forms] + [(PLAIN, each) for each in ENCODINGS]
    return [
        pytest.param(
            words, some, forms[form], ENCODINGS[encoding], id=f"{name}, {form}, {encoding}"
        )
        for name, (words, some) in readers.items()
        for form, encoding in dict.fromkeys(cells)
    ]


@pytest.mark.parametrize(
    ("words", "some", "form", "encoded"),
    _params(OBJECT_READERS, OF_SEVERAL) + _params(DOCUMENT_READERS, OF_ONE),
)
def test_a_form_is_read_as_the_same_objects(
    words: tuple[str, ...],
    some: list[Manifest],
    form: Form,
    encoded: Callable[[str], bytes],
    read: Callable[..., Any],
) -> None:
    if words[0] == "plot":
        pytest.importorskip("matplotlib")
    if words not in _EXPECTED:
        plain = as_json(of_any(some) if len(some) > 1 else some[0])
        _EXPECTED[words] = read(words, plain.encode())
    expected = _EXPECTED[words]
    assert expected[0] == (1 if expected[3] else 0), expected
    assert read(words, encoded(form(some))) == expected


@pytest.mark.parametrize("form", [pytest.param(each, id=name) for name, each in OF_SEVERAL.items()])
@pytest.mark.parametrize(
    "encoded", [pytest.param(each, id=name) for name, each in ENCODINGS.items()]
)
def test_nodes_to_play_are_read_from(
    form: Form, encoded: Callable[[str], bytes], tmp_path: Path
) -> None:
    """`nodes` and `up` read ``--nodes-from`` so."""
    file = tmp_path / "nodes"
    file.write_bytes(encoded(form(NODES)))
    names: list[Any] = [each["metadata"] for each in load_nodes(file)]
    assert [each["name"] for each in names] == ["n1", "n2"]


@pytest.mark.parametrize(
    ("words", "some"),
    [pytest.param(words, some, id=name) for name, (words, some) in DOCUMENT_READERS.items()],
)
@pytest.mark.parametrize(
    "form", ["an array", "a List", "a typed list", "JSON lines of Windows, with null"]
)
def test_two_documents_are_refused_where_one_is_expected(
    form: str, words: tuple[str, ...], some: list[Manifest], read: Callable[..., Any]
) -> None:
    named = [{"apiVersion": "v1", "kind": "Any", **each} for each in some]
    code, output, said, calls = read(words, OF_SEVERAL[form](named * 2).encode())
    assert (code, output, calls) == (2, "", ())
    assert said.startswith("error: ")
    assert "Traceback" not in said
