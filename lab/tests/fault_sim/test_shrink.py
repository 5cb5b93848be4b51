"""Making a script shorter."""

from __future__ import annotations

from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.acts import Script
from moorage_lab.fault_sim.shrink import shrunk
from moorage_sandbox.testing.builders import node_manifest


def script(count: int) -> Script:
    creations = [acts.Delete(at=float(at), kind="Pod", name=f"p{at}") for at in range(count)]
    nodes = [node_manifest(f"n{number}") for number in range(5)]
    return Script(seed=1, replicas=3, nodes=nodes, acts=list(creations))


def names(of: Script) -> list[str]:
    return [act.name for act in of.acts if isinstance(act, acts.Delete)]


def test_what_is_needed_stays_and_everything_else_goes() -> None:
    def breaks(candidate: Script) -> bool:
        return {"p3", "p17", "p18"} <= set(names(candidate)) and len(candidate.nodes) >= 2

    short = shrunk(script(40), breaks)
    assert names(short) == ["p3", "p17", "p18"]
    assert (len(short.nodes), short.replicas) == (2, 1)


def test_the_number_of_tries_is_bounded() -> None:
    tries: list[int] = []
    shrunk(script(40), lambda candidate: True, tries_max=7, on_try=lambda n, left: tries.append(n))
    assert tries[:7] == [1, 2, 3, 4, 5, 6, 7]
    assert len(tries) <= 16  # those beyond are not played
