"""Requests to an HTTP extender, and the meaning of its answers: pure functions over bytes.

`extender` sends the bodies built here. Keys are the Go field names of kubernetes v1.36
``staging/src/k8s.io/kube-scheduler/extender/v1``, nothing is left out; keys of answers are
accepted in any letter case, as Go's decoder does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from moorage.api.codec import decode_untyped, decoder, encode
from moorage.api.meta import ApiObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base.errors import DecodeError, ExtenderError
from moorage.base.outside_texts import cut_text

Whole = Callable[[ApiObject], bytes]
"""Gives an object's whole JSON, including the fields that moorage does not read."""

Victims = Mapping[str, tuple[Sequence[Pod], int]]


# Errors of reading bytes in one step; a second look separates nonsense from another spelling.
_UNUSUAL = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


# Stands for all nodes in an answer; no name contains what is between the quotes.
_ALL_NAME = " all "
_ALL = encode({"metadata": {"name": _ALL_NAME}})
_ITEMS = b'"items":['


class Filtered(msgspec.Struct, frozen=True):
    """An answer to the filter verb; None where the answer names no nodes in that form."""

    names: list[str] | None
    node_names: list[str] | None
    failed: dict[str, str]
    unresolvable: dict[str, str]
    error: str


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""


class _Node(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


class _Nodes(msgspec.Struct, frozen=True):
    items: list[_Node] | None = None


class _FilterAnswer(msgspec.Struct, frozen=True, rename="pascal", forbid_unknown_fields=True):
    nodes: _Nodes | None = None
    node_names: list[str] | None = None
    failed_nodes: dict[str, str] | None = None
    failed_and_unresolvable_nodes: dict[str, str] | None = None
    error: str = ""


# gc: an answer has a thousand of these objects, and none is part of a reference cycle.
class _Score(msgspec.Struct, frozen=True, rename="pascal", forbid_unknown_fields=True, gc=False):
    host: str = ""
    score: int = 0


Listed = Callable[[Sequence[Node]], bytes]
"""Gives the JSON of several nodes, separated by commas."""


class NodeList:
    """The nodes of a question, and data made of their names.

    Parameters
    ----------
    nodes
        In the order asked about.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = list(nodes)
        self.names = [node.metadata.name for node in nodes]
        self.known = frozenset(self.names)
        self.names_text = encode(self.names)


def nodes_body(pod: bytes, node_list: NodeList, nodes: bytes | None) -> tuple[bytes, ...]:
    """Build the body of filter and prioritize: nodes as objects, or by name without their JSON."""
    if nodes is None:
        return (b'{"Pod":%b,"Nodes":null,"NodeNames":' % pod, node_list.names_text, b"}")
    head = b'{"Pod":%b,"Nodes":{"metadata":{},"items":[' % pod
    return head, nodes, b']},"NodeNames":null}'


def preempt_body(pod: bytes, victims: Victims, whole: Whole | None) -> bytes:
    """Build the body of preempt: victims as objects, or by uid without `whole`."""
    entries = []
    for name, (pods, violations) in victims.items():
        each = [encode({"UID": one.uid}) if whole is None else whole(one) for one in pods]
        listed = b",".join(each)
        text = b'%b:{"Pods":[%b],"NumPDBViolations":%d}' % (encode(name), listed, violations)
        entries.append(text)
    told = b"{%b}" % b",".join(entries)
    full, meta = (b"null", told) if whole is None else (told, b"null")
    return b'{"Pod":%b,"NodeNameToVictims":%b,"NodeNameToMetaVictims":%b}' % (pod, full, meta)


def bind_body(pod: Pod, node_name: str) -> bytes:
    """Build the body of bind."""
    return encode(
        {
            "PodName": pod.metadata.name,
            "PodNamespace": pod.metadata.namespace,
            "PodUID": pod.uid,
            "Node": node_name,
        }
    )


def read_filter(
    body: bytes, node_list: NodeList | None = None, nodes: bytes | None = None
) -> Filtered:
    """Read an answer to filter.

    Parameters
    ----------
    body
        The answer.
    node_list, nodes
        The nodes asked about, and their JSON as sent. None: the answer is read whole.

    Raises
    ------
    ExtenderError
        The body is no answer to this verb.

    Notes
    -----
    Answers spelled as Go spells them are read in one step, which skips all that nodes hold. Even
    that takes a millisecond for a thousand nodes: nodes that all come back letter by letter as sent
    are not read at all.
    """
    if node_list is not None and nodes and (answer := _filter_of_all(body, node_list, nodes)):
        return answer
    return _filter_as_go_spells_it(body) or _filter_however_spelled(body)


def _filter_of_all(body: bytes, node_list: NodeList, nodes: bytes) -> Filtered | None:
    start = body.find(_ITEMS) + len(_ITEMS)
    if start < len(_ITEMS) or not body.startswith(nodes, start):
        return None
    rest = b"".join((body[:start], _ALL, body[start + len(nodes) :]))
    answer = _filter_as_go_spells_it(rest)
    if answer is None or answer.names != [_ALL_NAME]:
        return None
    return msgspec.structs.replace(answer, names=node_list.names)


def _filter_as_go_spells_it(body: bytes) -> Filtered | None:
    try:
        answer = decoder(_FilterAnswer).decode(body)
    except _UNUSUAL:
        return None
    names: list[str] | None = None
    if answer.nodes is not None:
        names = [node.metadata.name for node in answer.nodes.items or ()]
        if answer.nodes.items is None or "" in names:
            return None
    return Filtered(
        names=names,
        node_names=answer.node_names,
        failed=_cut(answer.failed_nodes or {}),
        unresolvable=_cut(answer.failed_and_unresolvable_nodes or {}),
        error=answer.error,
    )


def _filter_however_spelled(body: bytes) -> Filtered:
    answer = _object(body)
    nodes = _field(answer, "nodes", dict)
    items = None if nodes is None else _field(_folded(nodes), "items", list) or []
    names = _field(answer, "nodenames", list)
    return Filtered(
        names=None if items is None else [_name_of(item) for item in items],
        node_names=None if names is None else [_as(name, str, "NodeNames") for name in names],
        failed=_texts(answer, "failednodes"),
        unresolvable=_texts(answer, "failedandunresolvablenodes"),
        error=_field(answer, "error", str) or "",
    )


def read_scores(body: bytes) -> dict[str, int]:
    """Read an answer to prioritize; several scores of one node add up.

    Raises
    ------
    ExtenderError
        The body is no answer to this verb.
    """
    answers = _scores(body)
    for each in answers:
        if not -(2**63) <= each.score < 2**63:
            raise ExtenderError(f"score {each.score} of node {each.host!r} does not fit in 64 bits")
    scores = {each.host: each.score for each in answers}
    if len(scores) < len(answers):
        scores = dict.fromkeys(scores, 0)
        for each in answers:
            scores[each.host] += each.score
    return scores


def _scores(body: bytes) -> list[_Score]:
    try:
        return decoder(list[_Score]).decode(body)
    except _UNUSUAL:
        listed = _decoded(body)
        entries = _as([] if listed is None else listed, list, "the answer")
        answers = [_folded(_as(entry, dict, "an entry")) for entry in entries]
        return [_Score(_field(a, "host", str) or "", _field(a, "score", int) or 0) for a in answers]


def read_victims(body: bytes) -> dict[str, tuple[list[str], int]]:
    """Read an answer to preempt: by node, the uids of its victims and the number of protected ones.

    Raises
    ------
    ExtenderError
        The body is no answer to this verb.
    """
    uids_by_node: dict[str, tuple[list[str], int]] = {}
    answer = _object(body)
    for name, entry in (_field(answer, "nodenametometavictims", dict) or {}).items():
        victims = _folded(_as({} if entry is None else entry, dict, name))
        pods = _field(victims, "pods", list) or []
        uids = [_field(_folded(_as(pod, dict, "Pods")), "uid", str) or "" for pod in pods]
        uids_by_node[name] = uids, _field(victims, "numpdbviolations", int) or 0
    return uids_by_node


def read_error(body: bytes) -> str:
    """Read an answer to bind: "" for success.

    Raises
    ------
    ExtenderError
        The body is no answer to this verb.
    """
    return _field(_object(body), "error", str) or ""


def _decoded(body: bytes) -> Any:
    try:
        return decode_untyped(body)
    except DecodeError as error:
        raise ExtenderError(str(error)) from error


def _object(body: bytes) -> dict[str, Any]:
    found = _decoded(body)
    return _folded(_as({} if found is None else found, dict, "the answer"))


def _folded(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {key.lower(): value for key, value in mapping.items()}


def _field(mapping: Mapping[str, Any], name: str, type_: type[Any]) -> Any:
    value = mapping.get(name)
    return None if value is None else _as(value, type_, name)


def _as(value: Any, type_: type[Any], what: str) -> Any:
    if not isinstance(value, type_) or (type_ is int and isinstance(value, bool)):
        names = {dict: "an object", list: "a list", str: "a text", int: "a whole number"}
        raise ExtenderError(f"{what} is not {names[type_]}")
    return value


def _texts(answer: Mapping[str, Any], name: str) -> dict[str, str]:
    texts = _field(answer, name, dict) or {}
    return _cut({key: _as(text, str, name) for key, text in texts.items()})


def _cut(texts: dict[str, str]) -> dict[str, str]:
    return {key: cut_text(text) for key, text in texts.items()}


def _name_of(node: Any) -> str:
    metadata = _field(_folded(_as(node, dict, "a node")), "metadata", dict) or {}
    name: str = _field(_folded(metadata), "name", str) or ""
    return name
