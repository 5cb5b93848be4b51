"""Folds pods: rows of equal owner, group and reason become one, with a count.

The one function for every place that lists pods: the queue's answer over HTTP, the commands and the
page. A row of one pod and a fold of many have one type, so a fold can be folded again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar, Final, Literal, TypeAlias, assert_never

import msgspec

from moorage.api.mentions import Prose, SubjectNamespace

By: TypeAlias = Literal["owner", "group", "reason", "namespace", "none"]
Sort: TypeAlias = Literal["age", "priority", "pods"]
_NAMES_MOST: Final = 10
"""Names that a fold lists; a guess: more are read in the list of pods."""


class Fold(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Pods that are alike: they wait, start or run alike.

    Parameters
    ----------
    pods
        How many they are.
    namespace
        Their namespace; "" for several.
    owner
        Their owner as ``kind/name``; "" for none, or several.
    group
        ``namespace/name`` of their group; "" for none, or several.
    reason
        The code of the reason why they wait; "" for several.
    names
        The names of the first of them.
    queues
        How many of them are in each place: a queue where they wait, or a node.
    oldest
        Since when the first of them waits, RFC 3339; "" where that is not known.
    priority
        The highest of their priorities.
    message
        What is said of the one that waits longest.
    requests
        What they request together, in nano units, by resource; empty where that is not asked.
    """

    counted_as: ClassVar[str] = "row"
    name: ClassVar[str] = ""
    """No pod of its own: only who may list the namespace's pods sees a row."""

    pods: int = 1
    namespace: SubjectNamespace = ""
    owner: str = ""
    group: str = ""
    reason: str = ""
    names: tuple[str, ...] = ()
    queues: dict[str, int] = {}
    oldest: str = ""
    priority: int = 0
    message: Prose = ""
    requests: dict[str, int] = {}


class Folded(msgspec.Struct, frozen=True):
    """The first folds, and how much is not shown.

    Parameters
    ----------
    folds
        The folds.
    rows_left, pods_left
        How many folds are not shown, and their pods.
    """

    folds: tuple[Fold, ...]
    rows_left: int = 0
    pods_left: int = 0


def fold(
    rows: Iterable[Fold], *, by: By = "owner", within_namespaces: bool = False, sort: Sort = "pods"
) -> list[Fold]:
    """Return rows of pods with those that wait alike as one.

    Parameters
    ----------
    rows
        Pods one by one, or folds.
    by
        What makes rows alike. owner: the owner, the group and the reason; group: the group, and the
        reason of pods without one; none: every row by itself, named by its pod.
    within_namespaces
        Whether rows of several namespaces stay apart, whatever `by` says.
    sort
        What comes first: the pods that wait longest, of the highest priority, or the most pods.
    """
    if by == "none":
        folds = [msgspec.structs.replace(row, owner="") for row in rows]
    else:
        folds = _folds(rows, by, within_namespaces=within_namespaces)
    match sort:
        case "age":
            folds.sort(key=lambda each: each.oldest or "~")
        case "priority":
            folds.sort(key=lambda each: (-each.priority, each.oldest or "~"))
        case "pods":
            folds.sort(key=lambda each: (-each.pods, each.oldest or "~"))
        case _:
            assert_never(sort)
    return folds


def _folds(rows: Iterable[Fold], by: By, *, within_namespaces: bool) -> list[Fold]:
    alike: dict[tuple[str, ...], list[Fold]] = {}
    for row in rows:
        key = _key(row, by)
        alike.setdefault((row.namespace, *key) if within_namespaces else key, []).append(row)
    return [each[0] if len(each) == 1 else _joined(each) for each in alike.values()]


def first_folds(folds: list[Fold], limit: int) -> Folded:
    """Return the first folds, and count the others."""
    left = folds[limit:]
    return Folded(tuple(folds[:limit]), len(left), sum(each.pods for each in left))


def _key(row: Fold, by: By) -> tuple[str, ...]:
    match by:
        case "owner":
            return row.namespace, row.owner, row.group, row.reason
        case "group":
            return (row.namespace, row.group) if row.group else (row.namespace, "", row.reason)
        case "reason":
            return (row.reason,)
        case "namespace":
            return (row.namespace,)
        case "none":
            raise AssertionError("rows that are not folded have no key")


def _joined(rows: list[Fold]) -> Fold:
    first = min(rows, key=lambda each: each.oldest or "~")
    queues, requests, names = Counter[str](), Counter[str](), list[str]()
    for row in rows:
        names += row.names[: _NAMES_MOST - len(names)]
        queues.update(row.queues)
        requests.update(row.requests)
    return Fold(
        pods=sum(row.pods for row in rows),
        namespace=_same([row.namespace for row in rows]),
        owner=_same([row.owner for row in rows]),
        group=_same([row.group for row in rows]),
        reason=_same([row.reason for row in rows]),
        names=tuple(names),
        queues=dict(queues),
        oldest=first.oldest,
        priority=max(row.priority for row in rows),
        message=first.message,
        requests=dict(requests),
    )


def _same(values: list[str]) -> str:
    """Return the value that all have; "" where they differ."""
    return values[0] if len(set(values)) == 1 else ""
