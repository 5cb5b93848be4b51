"""Reads changes as they are written on a command line or in a scenario."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from moorage.api.resources import by_name
from moorage.api.yaml_text import read_one
from moorage.base.errors import DecodeError, UsageError
from moorage.base.files import read_file
from moorage.cli.manifests import read_manifests
from moorage.config.load import load_config
from moorage.config.own import LoadedConfiguration
from moorage.nodeshapes.shapes import parse_shape, shaped_nodes
from moorage.plugins.from_outside import with_plugins
from moorage.what_if import change
from moorage.what_if.course import Reconfigure, Step
from moorage.what_if.fullness import ZONE

_COPIES: Final = re.compile(r"([0-9]+)x(.+)", re.DOTALL)
_TAINT: Final = re.compile(r"([^=]+)=([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)")
_SCALE: Final = re.compile(r"([^/=]+)/([^/=]+)=([0-9]+)")
_PRIORITY: Final = re.compile(r"pod[=/]([^:]+):(-?[0-9]+)")
_ORDER: Final = (
    "add",
    "apply",
    "scale",
    "priority",
    "taint",
    "cordon",
    "drain",
    "remove",
    "delete",
)
"""The order in which the changes of options happen."""
_ADDED_MOST: Final = 2_000
"""Most nodes of one --add; they take some seconds, and four times as long for twice as many."""
_DIGITS_MOST: Final = 20


class Reading:
    """Turns texts into changes.

    Parameters
    ----------
    namespace
        The namespace of names and manifests that say none.
    running
        Returns the configuration that the scheduler has, to which plugins are added. The
        scheduler is asked for it, so it is called for such a change alone.
    """

    def __init__(self, namespace: str, running: Callable[[], LoadedConfiguration]) -> None:
        self._running = running
        self._namespace = namespace
        self._added = 0
        self._readers: dict[str, Callable[[str], Sequence[Step]]] = {
            "add": self._add,
            "apply": self._apply,
            "scale": self._scale,
            "priority": self._priority,
            "taint": self._taint,
            "cordon": lambda text: [change.Cordon(text)],
            "drain": lambda text: [change.Drain(text)],
            "remove": lambda text: [change.RemoveNode(text)],
            "delete": self._delete,
            "config": lambda text: self.reconfigured(text, ()),
            "plugin": lambda text: self.reconfigured("", (text,)),
        }

    def read_changes(self, what: str, text: str) -> Sequence[Step]:
        """Return the changes of one text.

        Raises
        ------
        UsageError
            There is no such change, or the text cannot be read.
        """
        reader = self._readers.get(what)
        if reader is None:
            raise UsageError(f"there is no change {what!r}; there are {', '.join(self._readers)}")
        return reader(text)

    def reconfigured(self, config: str, plugins: Sequence[str]) -> Sequence[Step]:
        """Return the change to another configuration, or to further plugins.

        Raises
        ------
        UsageError
            The file or a plugin cannot be used.
        """
        loaded = self._running() if not config else load_config(Path(config))
        known = with_plugins(loaded, plugins)
        return [Reconfigure(known.config, known.registry)]

    def _add(self, text: str) -> Sequence[Step]:
        counted = _COPIES.fullmatch(text)
        # A number of more digits than Python converts is too many as well.
        digits, shape_text = (counted[1], counted[2]) if counted else ("1", text)
        count = int(digits[:_DIGITS_MOST])
        if count > _ADDED_MOST:
            raise UsageError(f"--add {text[:60]}: at most {_ADDED_MOST} nodes")
        try:
            shape = parse_shape(shape_text)
            shape = msgspec.structs.replace(shape, count=None)
            templates: list[Any] = list(shaped_nodes([shape], count, prefix="added"))
        except UsageError as error:
            raise UsageError(str(error).replace("--shape", "--add", 1)) from error
        return [self._one_node(each, dict(shape.labels)) for each in templates]

    def _one_node(self, template: Any, own: Mapping[str, str]) -> change.AddNode:
        """Return the change that adds a node, in the next zone unless its shape names one."""
        self._added += 1
        name = f"added-{self._added:02d}"
        labels = dict(template["metadata"]["labels"]) | {"kubernetes.io/hostname": name}
        if ZONE not in own:
            labels.pop(ZONE, None)
        metadata = {**template["metadata"], "name": name, "labels": labels}
        turn = None if ZONE in own else self._added - 1
        return change.AddNode({**template, "metadata": metadata}, turn)

    def _apply(self, text: str) -> Sequence[Step]:
        return [change.Apply(each, self._namespace) for each in read_manifests([text])]

    def _scale(self, text: str) -> Sequence[Step]:
        found = _SCALE.fullmatch(text)
        if found is None:
            raise UsageError(f"scale {text}: write KIND/NAME=NUMBER, such as deployment/web=5")
        return [change.Scale(_kind(found[1]).kind, self._namespace, found[2], int(found[3]))]

    def _priority(self, text: str) -> Sequence[Step]:
        found = _PRIORITY.fullmatch(text)
        if found is None:
            raise UsageError(f"priority {text}: write pod=NAME:VALUE, such as pod=web-1:1000")
        return [change.SetPriority(self._namespace, found[1], int(found[2]))]

    def _taint(self, text: str) -> Sequence[Step]:
        match = _TAINT.fullmatch(text)
        if match is None:
            raise UsageError(
                f"taint {text}: write NODE=KEY=VALUE:EFFECT, the effect one of NoSchedule, "
                "PreferNoSchedule, NoExecute"
            )
        return [change.AddTaint(match[1], match[2], match[3] or "", match[4])]

    def _delete(self, text: str) -> Sequence[Step]:
        kind, slash, name = text.partition("/")
        if not slash or not name:
            raise UsageError(f"delete {text}: write KIND/NAME, such as deployment/web")
        return [change.Delete(_kind(kind).kind, self._namespace, name)]


def flag_changes(flags: Mapping[str, Any], reading: Reading) -> list[Step]:
    """Return the changes of the options, in the documented order.

    Raises
    ------
    UsageError
        A value cannot be read.
    """
    steps: list[Step] = []
    if flags["config"] or flags["plugin"]:
        steps += reading.reconfigured(flags["config"], flags["plugin"])
    for what in _ORDER:
        for text in flags[what]:
            steps += reading.read_changes(what, text)
    return steps


def scenario_changes(file: Path, reading: Reading) -> list[Step]:
    """Return the changes of a scenario.

    Raises
    ------
    UsageError
        The file cannot be read, or a step is not ``change: text``.
    """
    try:
        document = read_one(read_file(file))
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    except DecodeError as error:
        raise UsageError(f"{file}: not YAML: {error}") from error
    listed = document.get("steps") if isinstance(document, dict) else None
    if not isinstance(listed, list) or not listed:
        raise UsageError(f"{file}: no steps; a scenario is `steps:` and a list of changes")
    steps: list[Step] = []
    for number, step in enumerate(listed, start=1):
        if not isinstance(step, dict) or len(step) != 1:
            raise UsageError(f"{file}: step {number}: write one change, such as drain: node-03")
        ((what, value),) = step.items()
        texts = value if isinstance(value, list) else [value]
        for text in texts:
            if not isinstance(text, str):
                raise UsageError(f"{file}: step {number}: {what}: write text, or a list of texts")
            try:
                steps += reading.read_changes(what, text)
            except UsageError as error:
                raise UsageError(f"{file}: step {number}: {error}") from error
    return steps


def _kind(word: str) -> Any:
    found = by_name(word)
    if found is None:
        raise UsageError(f"there is no kind {word!r}")
    return found
