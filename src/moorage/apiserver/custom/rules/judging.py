"""Where rules are evaluated: in this process if certainly fast, else in a process of its own.

Place in the flow: validation of custom resources and of defaults in definitions evaluates rules
here. A rule can make 2 GB out of 1 MB with ten sums. The CEL runtime can neither be interrupted nor
limited in memory. An upper estimate finds rules that may take long. The judge evaluates them, a
process of their own with a deadline and a memory limit. An object that exceeds them is refused in
the words of kube-apiserver. Its cost budget has the same purpose.

The loop never waits for the judge: in the loop, `LATER` moves the call to the thread of heavy
calls. Under a virtual clock there is no judge, and every rule is evaluated in this process.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import selectors
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO, Any, Final, Literal

from moorage.apiserver.custom.pruning import Schema
from moorage.apiserver.custom.rules.compiled import CompiledRules, compiled_rules
from moorage.apiserver.custom.rules.evaluation import USED_UP, broken_rules
from moorage.apiserver.custom.rules.runtime import ITERATIONS_MAX
from moorage.apiserver.kind import FieldError, invalid

# Characters that take about 50 ms (measured: 35 ns each to concatenate two texts).
_CHARACTERS_MAX: Final = 1_500_000
# Smallest size of a value in characters, its key included (a guess). Speed of comparing texts as a
# multiple of the speed of concatenating them.
_CHARACTERS_OF_VALUE: Final = 8
_QUICK: Final = 100
# Deadline of the judge for one object, and its memory limit.
JUDGE_SECONDS: Final = 3.0
_JUDGE_BYTES: Final = 1536 * 1024 * 1024
# Deadline for the start of the judge: the import of the runtime, on a busy machine.
_START_SECONDS: Final = 30.0
_LENGTH: Final = struct.Struct("!Q")
_PROGRAM: Final = f"from {__name__} import serve; serve()"


class TooLongHere(Exception):  # noqa: N818
    """Rules of this call have to be evaluated outside of the loop; nothing has been changed."""


class Judge:
    """A process that evaluates rules; started on first use, and again after its end."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def broken(self, question: Any) -> list[FieldError] | None:
        """Have rules evaluated; None if the judge exceeds its deadline or its memory limit."""
        try:
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            _write(process.stdin, question)
            found: list[FieldError] = _read(process.stdout, JUDGE_SECONDS)
        except (OSError, EOFError, TimeoutError):
            self.close()
            return None
        return found

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
            )
            assert self._process.stdout is not None
            _read(self._process.stdout, _START_SECONDS)
        return self._process


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
    compiled = compiled_rules(schema, whole=whole)
    if compiled.node is None:
        return []
    where = _where.get()
    if where is None or not _may_take_long(compiled, new, old):
        return broken_rules(compiled.node, new, old, path, forgiving=forgiving)
    if not isinstance(where, Judge):
        raise TooLongHere
    found = where.broken((schema, whole, new, old, path, forgiving))
    if found is None:
        return [invalid(path or "<nil>", compiled.node.type_name, USED_UP)]
    return found


def _may_take_long(compiled: CompiledRules, new: Any, old: Any) -> bool:
    """Whether evaluating may take more than about 50 ms, by an upper estimate."""
    characters = len(pickle.dumps((new, old)))
    largest = 0
    for program in compiled.programs:
        # Each sum may double a text, a product multiplies two sizes, and a loop repeats all of
        # this.
        steps = min((characters // _CHARACTERS_OF_VALUE) ** program.depth, ITERATIONS_MAX)
        text = (characters + program.length) ** (1 + program.products)
        if not (program.sums or program.products or program.reads_text):
            text //= _QUICK
        largest = max(largest, (text << min(program.sums, 64)) * steps)
    return largest > _CHARACTERS_MAX


def serve() -> None:
    """Run the judge: answer one question after the other from standard input."""
    with contextlib.suppress(OSError, ValueError):  # Not every system has this limit.
        resource.setrlimit(resource.RLIMIT_AS, (_JUDGE_BYTES, _JUDGE_BYTES))
    source, target = os.fdopen(0, "rb", 0), os.fdopen(1, "wb", 0)
    _write(target, "ready")
    while True:
        try:
            schema, whole, new, old, path, forgiving = _read(source, None)
        except EOFError:
            return
        node = compiled_rules(schema, whole=whole).node
        assert node is not None, "whoever asks has compiled them"
        _write(target, broken_rules(node, new, old, path, forgiving=forgiving))


def _write(target: IO[bytes], value: Any) -> None:
    data = pickle.dumps(value)
    view = memoryview(_LENGTH.pack(len(data)) + data)
    while view:
        view = view[target.write(view) or 0 :]


def _read(source: IO[bytes], seconds: float | None) -> Any:
    """Read one value; give up after so many seconds without data, never where that is None."""
    length = _LENGTH.unpack(_exactly(source, _LENGTH.size, seconds))[0]
    return pickle.loads(_exactly(source, length, seconds))


def _exactly(source: IO[bytes], length: int, seconds: float | None) -> bytes:
    data = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        while len(data) < length:
            if not selector.select(seconds):
                raise TimeoutError
            piece = source.read(length - len(data))
            if not piece:
                raise EOFError
            data += piece
    return bytes(data)
