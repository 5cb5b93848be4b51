"""Leaves out of an answer what its caller may not read: pods, nodes, claims and namespaces.

First `Redaction` finds out which names of the cluster an answer has (`doubts`), in the same moment
in which the answer was made. Then the API server is asked about them, and then `apply` leaves out
what the caller may not read. `moorage.api.mentions` says which field names what; each text is
compared with the names of the cluster, word by word.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Final

import msgspec

from moorage.service.questions.question import Answer
from moorage.service.questions.redaction_steps import GONE, HIDDEN, count_in_words, step_of
from moorage.service.questions.written_names import NODES, PODS, Candidates, WrittenNames

_NAME: Final = r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?"
_WORD: Final = re.compile(f"{_NAME}(?:/{_NAME})?")
_PART: Final = re.compile(_NAME)
_LABEL: Final = re.compile(r"[^./]+")


class Doubts(msgspec.Struct):
    """The things that an answer names.

    Parameters
    ----------
    objects
        (plural of the kind, namespace) of pods, claims and nodes; nodes have no namespace.
    namespaces
        Names of namespaces.
    """

    objects: set[tuple[str, str]] = msgspec.field(default_factory=set)
    namespaces: set[str] = msgspec.field(default_factory=set)


class Sight(msgspec.Struct, frozen=True):
    """What a caller may see of these things.

    Parameters
    ----------
    objects, namespaces
        As in `Doubts`; only what may be seen.
    granted
        (namespace, name) of pods that may be seen although others of their namespace may not.
    """

    objects: frozenset[tuple[str, str]] = frozenset()
    namespaces: frozenset[str] = frozenset()
    granted: frozenset[tuple[str, str]] = frozenset()


class Redaction:
    """One answer, and the names in it.

    Parameters
    ----------
    answer
        The whole answer.
    names
        The names of the cluster at the moment of the answer.
    """

    def __init__(self, answer: msgspec.Struct, names: WrittenNames) -> None:
        self._answer = answer
        self._names = names
        self._sight: Sight | None = None
        self._left_out: Counter[str] = Counter()
        self.doubts = Doubts()
        """What the answer names."""
        self._walk(answer)

    def apply(self, sight: Sight) -> msgspec.Struct:
        """Return the answer without the things that may not be seen; it says how many."""
        self._sight = sight
        self._left_out.clear()
        found = self._walk(self._answer)
        lines = tuple(count_in_words(count, noun) for noun, count in sorted(self._left_out.items()))
        if not (lines and isinstance(found, Answer)):
            return found
        return msgspec.structs.replace(found, hidden=lines)

    def redacted_text(self, text: str) -> str:
        """Return a text without the names that may not be seen."""
        return _WORD.sub(lambda match: self._word(match[0]), text)

    def leave_out(self, noun: str, count: int = 1) -> None:
        """Count things that are left out."""
        self._left_out[noun] += count

    def sees_nodes(self) -> bool:
        """Whether nodes may be seen."""
        return self._sees(NODES, "", "")

    def sees_pod(self, namespace: str, name: str) -> bool:
        """Whether a pod may be seen."""
        return self._sees(PODS, namespace, name)

    def _walk(self, answer: msgspec.Struct) -> msgspec.Struct:
        step = step_of(type(answer))
        if step is None:
            return answer
        found: Any = step(answer, self)
        # The caller may read the one pod that a question is about, or it was refused.
        assert found is not GONE, "an answer is not about hidden things alone"
        assert isinstance(found, msgspec.Struct), "as the step was given"
        return found

    def _sees(self, kind: str, namespace: str, name: str) -> bool:
        if self._sight is None:
            self.doubts.objects.add((kind, namespace))
            return True
        if kind == PODS and (namespace, name) in self._sight.granted:
            return True
        return (kind, namespace) in self._sight.objects

    def _sees_namespace(self, name: str) -> bool:
        if self._sight is None:
            self.doubts.namespaces.add(name)
            self.doubts.objects.add((PODS, name))
            return True
        granted = any(namespace == name for namespace, _ in self._sight.granted)
        seen = name in self._sight.namespaces or (PODS, name) in self._sight.objects
        return seen or granted

    def _word(self, word: str) -> str:
        """Return a word of a text, or what stands for it."""
        namespace, slash, name = word.partition("/")
        if (
            slash
            and self._names.candidates_in(namespace).namespace
            and not self.sees_pod(namespace, name)
        ):
            return HIDDEN
        if self._hides(self._names.candidates_in(word)):
            return HIDDEN
        if slash:
            return _PART.sub(lambda match: self._word(match[0]), word)
        if "." in word:
            return _LABEL.sub(lambda match: self._word(match[0]), word)
        return word

    def _hides(self, candidates: Candidates) -> bool:
        """Whether a name is the name of hidden things only."""
        # A list: all of them are doubts, also behind the first that may be seen.
        rights = [
            self._sees(kind, namespace, candidates.name) for kind, namespace in candidates.objects
        ]
        if candidates.node:
            rights.append(self.sees_nodes())
        if candidates.namespace:
            rights.append(self._sees_namespace(candidates.name))
        return bool(rights) and not any(rights)
