"""Mistakes that a machine makes: the simulation is measured by those that it finds.

``python -m lab.tests.fault_sim.mutations --seed S --count N`` draws changes of the scheduler's
source from a seed: another comparison, a condition turned round, a call left out, a return that
comes early. Each is made alone in a copy of the source, and a hunt is played there in a process of
its own, with a limit of processor time. The results are kept in ``mutation_results.json``; the
share that was found is told with its interval of 95 %.

The mistakes of ``planted.toml`` were chosen by people who knew the simulation. These are not. A
change that nobody can observe is judged by hand: ``judged`` in the file begins with "equal" and
says why. It may also say why a change that counts was not found.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lab.tests.fault_sim.planted import HERE, copied
from moorage.base.rng import Streams
from moorage_lab.fault_sim.fault_run import play
from moorage_lab.fault_sim.hunt import Steering
from moorage_lab.fault_sim.scenarios import IN_TURN, scenario
from tests import packages

SOURCE = packages.SOURCES[0] / "moorage"

RESULTS = HERE / "mutation_results.json"
ROOMS = ("engine", "framework", "plugins", "service", "snapshot", "state")
# What no simulated cluster runs: the questions and the ports of a process, and what only tells.
_ELSEWHERE = ("service/questions/", "service/serving/", "service/process/zpages.py")

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COUNTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
}


class Mutation(NamedTuple):
    """One change: a span of a file, and the text that is put there."""

    file: str
    line: int
    kind: str
    begin: int
    end: int
    text: str

    @property
    def name(self) -> str:
        """The place and the change, for people."""
        return f"{self.file}:{self.line} {self.kind}: {' '.join(self.text.split())[:70]}"


class Result(NamedTuple):
    """The invariant that told, "" for none; the runs and the processor's seconds it took."""

    invariant: str
    runs: int
    seconds: float


def mutations_of(file: str, text: str) -> list[Mutation]:
    """Return every change of a file that this module can make, in the order of the source."""
    tree = ast.parse(text)
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for kind, node, new in _changes(tree):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        found.append(Mutation(file, node.lineno, kind, begin, end, new))
    return sorted(found, key=lambda each: (each.begin, each.end, each.kind, each.text))


def mutated(text: str, mutation: Mutation) -> str:
    """Return the text of a file with a change."""
    raw = text.encode()
    return (raw[: mutation.begin] + mutation.text.encode() + raw[mutation.end :]).decode()


Place = ast.expr | ast.stmt


def _changes(tree: ast.AST) -> Iterator[tuple[str, Place, str]]:
    """Yield kind, place and new text of each change of a tree; type annotations are left alone."""
    for node in _code_of(tree):
        match node:
            case ast.Compare(ops=[op]) if type(op) in _COMPARED:
                yield "comparison", node, _with(node, ops=[_COMPARED[type(op)]()])
            case ast.BoolOp():
                other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
                yield "and, or", node, _with(node, op=other)
            case ast.BinOp() if type(node.op) in _COUNTED and not _is_type(node):
                yield "operator", node, _with(node, op=_COUNTED[type(node.op)]())
            case ast.If() | ast.While() | ast.IfExp():
                yield "condition", node.test, f"(not ({ast.unparse(node.test)}))"
            case ast.Expr(value=ast.Call()) if not _only_tells(node):
                yield "dropped call", node, "pass"
            case ast.Return(value=ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not())):
                assert node.value is not None
                yield "result", node.value, f"(not ({ast.unparse(node.value)}))"
            case ast.FunctionDef(returns=ast.Constant(value=None)) if len(node.body) > 1:
                last = node.body[-1]
                if not isinstance(last, ast.Return | ast.Raise | ast.Pass):
                    yield "early return", last, "return"
            case _:
                pass


def _code_of(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that are run: no annotation, no assertion, no text of an error."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.Assert | ast.Raise):
                yield child
                yield from _code_of(child)


def _with(node: ast.expr, **fields: Any) -> str:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return f"({ast.unparse(changed)})"


def _is_type(node: ast.BinOp) -> bool:
    """Return whether an operation may be on texts, which would only end the program."""
    return any(isinstance(each, ast.JoinedStr) for each in (node.left, node.right))


def _only_tells(node: ast.Expr) -> bool:
    """Return whether a call only writes a log or a metric."""
    return any(word in ast.unparse(node.value) for word in ("_log.", "_facts.", "_points."))


def all_mutations() -> list[Mutation]:
    """Return every change of the scheduler's rooms."""
    return [
        mutation
        for room in ROOMS
        for path in sorted((SOURCE / room).rglob("*.py"))
        if not (file := path.relative_to(SOURCE).as_posix()).startswith(_ELSEWHERE)
        for mutation in mutations_of(file, path.read_text())
    ]


def drawn(seed: int, count: int) -> list[Mutation]:
    """Return so many changes; each of the scheduler is as likely as any other."""
    return Streams(seed).stream("mutations").sample(all_mutations(), count)


def interval(found: int, of: int) -> tuple[float, float]:
    """Return the interval of 95 % of a share, by Wilson's formula."""
    if of == 0:
        return 0.0, 1.0
    z, share = 1.96, found / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return max(0.0, middle - half), min(1.0, middle + half)


# --- hunting --------------------------------------------------------------------------------------


def hunted(first_seed: int, runs: int, seconds: float) -> Result:
    """Hunt in this process until an invariant is broken, or the runs or the time are over."""
    steering = Steering([scenario(name) for name in IN_TURN], first_seed)
    for number in range(runs):
        if time.process_time() > seconds:
            return Result("", number, time.process_time())
        script = steering.next()
        outcome = play(script)
        if outcome.breaches:
            return Result(outcome.breaches[0].invariant, number + 1, time.process_time())
        steering.learn(script, outcome)
    return Result("", runs, time.process_time())


def hunt(mutation: Mutation, source: Path, limits: tuple[int, int, float]) -> Result:
    """Hunt in a copy of the source that has a change, in a process of its own."""
    path = source / "moorage" / mutation.file
    right = path.read_text()
    path.write_text(mutated(right, mutation))
    words = ["--hunt", *map(str, limits)]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "lab.tests.fault_sim.mutations", *words],
            env={**os.environ, "PYTHONPATH": str(source)},
            cwd=packages.ROOT,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=_limited(limits[2]),
        )
    finally:
        path.write_text(right)
    if done.returncode == 0:
        return Result(*json.loads(done.stdout.splitlines()[-1]))
    if done.returncode < 0:
        return Result("does not end", 0, limits[2])
    return Result(f"ends: {done.stderr.strip().splitlines()[-1][:60]}", 0, 0.0)


def _limited(seconds: float) -> Callable[[], None]:
    """Return a function that lets a process that hangs end a while after its time."""
    most = math.ceil(seconds) + 60
    return lambda: resource.setrlimit(resource.RLIMIT_CPU, (most, most))


def summary(results: Sequence[dict[str, Any]]) -> str:
    """Return the share of the changes that were found, with and without those judged equal."""
    found = sum(bool(each["invariant"]) for each in results)
    missed = [each for each in results if not each["invariant"]]
    equal = sum(each["judged"].startswith("equal") for each in missed)
    lines = []
    for of, what in ((len(results), "all"), (len(results) - equal, "those that can be observed")):
        low, high = interval(found, of)
        share = found / of if of else 0.0
        lines.append(f"{found} of {of}, {what}: {share:.0%} ({low:.0%} to {high:.0%})")
    return "\n".join(lines)


def main() -> None:
    """Draw, hunt, and keep what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--runs", type=int, default=300, help="runs of a hunt at most")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the processor, a hunt")
    parser.add_argument("--first-seed", type=int, default=1, help="of a hunt")
    parser.add_argument("--hunt", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.hunt:
        first, runs, seconds = asked.hunt
        _say(json.dumps(hunted(int(first), int(runs), float(seconds))))
        return
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    with tempfile.TemporaryDirectory() as folder:
        source = copied(Path(folder))
        for mutation in drawn(asked.seed, asked.count):
            if any(each["name"] == mutation.name for each in known):
                continue
            limits = (asked.first_seed, asked.runs, asked.seconds)
            result = hunt(mutation, source, limits)
            kept = {"name": mutation.name, **result._asdict(), "judged": ""}
            known.append({**kept, "seconds": round(result.seconds, 1)})
            _say(f"{mutation.name:<110} {result.invariant or 'NOT FOUND'} {result.runs}")
            RESULTS.write_text(json.dumps(known, indent=1) + "\n")
    _say(summary(known))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
