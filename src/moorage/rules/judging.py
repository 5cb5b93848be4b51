"""Evaluates rules: in this process if certainly fast, else in a process of its own.

Place in the flow: validation of custom resources and of defaults in definitions evaluates rules
here. The CEL runtime can neither be interrupted nor limited in memory. So `evaluation` bounds the
cost of each rule before, and refuses rules over the limits of kube-apiserver. The judge evaluates
rules below these limits that may take long, a process of its own. Its deadline and its memory limit
are a second wall: an object that exceeds them is refused in the words of kube-apiserver.

The loop never waits for the judge: in the loop, `LATER` moves the call to the thread of heavy
calls. Under a virtual clock there is no judge, and every rule is evaluated in this process.
"""

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Final, Literal, NamedTuple

from moorage.kinds.kind import FieldError, invalid
from moorage.kinds.schema.pruning import Schema
from moorage.rules.compiled import compiled_rules
from moorage.rules.evaluation import USED_UP, Before, Evaluation, MayTakeLong

# Deadline of the judge for one object, and its memory limit.
JUDGE_SECONDS: Final = 3.0
_JUDGE_BYTES: Final = 1536 * 1024 * 1024
# Deadline for the start of the judge: the import of the runtime, on a busy machine.
_START_SECONDS: Final = 30.0
_PROGRAM: Final = f"from {__name__} import serve; serve(%d)"


class TooLongHere(Exception):  # noqa: N818
    """Rules of this call have to be evaluated outside of the loop; nothing has been changed."""


class Judge:
    """A process that evaluates rules; started on first use, and again after its end."""

    def __init__(self) -> None:
        self._running: tuple[subprocess.Popen[bytes], Connection] | None = None

    def ask(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Have a function called; None if the judge exceeds its deadline or its memory limit."""
        try:
            connection = self._connection()
            connection.send((function, arguments))
            found = _receive(connection, JUDGE_SECONDS)
        except (OSError, EOFError):  # TimeoutError is an OSError.
            self.close()
            return None
        return found

    def close(self) -> None:
        """End the process."""
        running, self._running = self._running, None
        if running is not None:
            process, connection = running
            process.kill()
            process.wait()
            connection.close()

    def _connection(self) -> Connection:
        if self._running is None:
            ours, its = Pipe()
            # -P: no module is taken from the directory that the server was started in.
            command = [sys.executable, "-P", "-c", _PROGRAM % its.fileno()]
            null = subprocess.DEVNULL
            process = subprocess.Popen(
                command, stdin=null, stdout=null, stderr=null, pass_fds=[its.fileno()]
            )
            its.close()
            self._running = process, ours
            _receive(ours, _START_SECONDS)
        return self._running[1]


def _receive(connection: Connection, seconds: float) -> Any:
    if not connection.poll(seconds):
        raise TimeoutError
    return connection.recv()


Where = Judge | Literal["later"] | None
LATER: Final = "later"
_where: ContextVar[Where] = ContextVar("where", default=None)


@contextmanager
def evaluated_by(where: Where) -> Iterator[None]:
    """Set the judge for rules that may take long, inside the context; None is this process."""
    token = _where.set(where)
    try:
        yield
    finally:
        _where.reset(token)


def rules_of(schema: Schema) -> Callable[[Any, Any], list[FieldError]] | None:
    """Return what judges a new and an old object by the rules of a schema; None without rules."""
    return partial(rules_broken_by, schema) if compiled_rules(schema).node is not None else None


def rules_broken_by(
    schema: Schema,
    new: Any,
    old: Any,
    path: str = "",
    *,
    whole: bool = True,
    forgiving: bool = True,
) -> list[FieldError]:
    """Return an error for every rule of a schema that a value breaks.

    Parameters
    ----------
    schema
        A structural schema.
    new, old
        The value, and its old value; None when the value is new.
    path
        Path of the value; empty for the object itself.
    whole
        The value is an object with ``apiVersion``, ``kind`` and ``metadata``.
    forgiving
        Whether an unchanged value may break rules that do not compare it with its old value.

    Raises
    ------
    TooLongHere
        The rules may take long, and the caller is in the loop.
    """
    node = compiled_rules(schema, whole=whole).node
    if node is None:
        return []
    found: list[FieldError] | None = judged(
        _broken, _Question(schema, whole, new, old, path, forgiving)
    )
    return [invalid(path or "<nil>", node.type_name, USED_UP)] if found is None else found


def judged(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function that evaluates rules, here if it is quick; None where the judge gives up.

    Parameters
    ----------
    function
        A function of a module, which the judge can import. It has a keyword ``only_quick``: to
        raise `MayTakeLong` instead of taking long.
    *arguments
        Values that can be pickled.

    Raises
    ------
    TooLongHere
        The rules may take long, and the caller is in the loop.
    """
    where = _where.get()
    try:
        return function(*arguments, only_quick=where is not None)
    except MayTakeLong:
        if not isinstance(where, Judge):
            raise TooLongHere from None
    return where.ask(function, arguments)


class _Question(NamedTuple):
    """The arguments of `rules_broken_by`."""

    schema: Schema
    whole: bool
    new: Any
    old: Any
    path: str
    forgiving: bool


def _broken(question: _Question, *, only_quick: bool = False) -> list[FieldError]:
    schema, whole, new, old, path, forgiving = question
    node = compiled_rules(schema, whole=whole).node
    assert node is not None, "the caller has compiled the rules"
    evaluation = Evaluation(only_quick=only_quick)
    before = Before(old, (new, old) if forgiving and old is not None else None)
    evaluation.visit(node, new, before, path)
    return evaluation.errors


def serve(descriptor: int) -> None:
    """Run the judge: answer one question after the other on a connection."""
    with contextlib.suppress(OSError, ValueError):  # Not every system has this limit.
        resource.setrlimit(resource.RLIMIT_AS, (_JUDGE_BYTES, _JUDGE_BYTES))
    connection = Connection(descriptor)
    connection.send("ready")
    with contextlib.suppress(EOFError):
        while True:
            function, arguments = connection.recv()
            connection.send(function(*arguments))
