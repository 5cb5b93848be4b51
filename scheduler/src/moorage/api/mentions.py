"""What the texts of answers name: annotations of the fields, which filter answers by rights.

A caller may not know the names of all pods, nodes and claims. The types below say which text names
what, so one filter serves all answers (`moorage.service.questions.redaction`).
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, TypeAlias


class Naming(Enum):
    """What a text names."""

    NODE = "node"
    """A node, or a zone of nodes."""
    POD = "pod"
    """A pod, as ``namespace/name``."""
    SUBJECT_POD = "subject pod"
    """The pod that the whole record is about, as ``namespace/name``."""
    SUBJECT_NAMESPACE = "subject namespace"
    """The namespace of the pod or the group that the whole record is about."""
    PROSE = "prose"
    """Anything: the words of a message or of a plugin."""


NodeName: TypeAlias = Annotated[str, Naming.NODE]
PodName: TypeAlias = Annotated[str, Naming.POD]
SubjectPod: TypeAlias = Annotated[str, Naming.SUBJECT_POD]
SubjectNamespace: TypeAlias = Annotated[str, Naming.SUBJECT_NAMESPACE]
Prose: TypeAlias = Annotated[str, Naming.PROSE]
ProseTree: TypeAlias = Annotated[dict[str, Any], Naming.PROSE]
"""Plain JSON values with texts of all kinds."""
