"""The fragmentation of a node is that of plain definitions to the last bit, however many nodes."""

from __future__ import annotations

import numpy as np

from moorage.base.rng import Streams
from moorage.config.plugin_args_gpu import TypicalPod
from moorage.plugins.gpu_share.categories import Fragmentation
from moorage.plugins.gpu_share.typical import NodeStates
from scheduler.tests.plugins.gpu_share.reference import RefNode, fragmentation_by_category

MODELS = ["", "T4", "G2"]
KINDS = [
    TypicalPod(cpu_milli=cpu, gpus=gpus, gpu_milli=milli, models=models, share=1 / share)
    for share, (cpu, gpus, milli, models) in enumerate(
        [
            (cpu, gpus, milli, models)
            for cpu in (4000, 9100, 30000)
            for gpus, milli in ((0, 0), (1, 230), (1, 470), (1, 1000), (4, 1000))
            for models in ((), ("T4",))
            if gpus or not models
        ],
        start=3,
    )
]


def shared() -> list[TypicalPod]:
    total = sum(kind.share for kind in KINDS)
    return [
        TypicalPod(
            cpu_milli=kind.cpu_milli,
            gpus=kind.gpus,
            gpu_milli=kind.gpu_milli,
            models=kind.models,
            share=kind.share / total,
        )
        for kind in KINDS
    ]


def nodes() -> list[RefNode]:
    draw = Streams(7).stream("nodes")
    parts = (0, 120, 230, 530, 770, 1000)
    return [
        RefNode(
            draw.choice((0, 5000, 20000, 90000)),
            0,
            [draw.choice(parts) for _ in range(draw.choice((0, 1, 4, 8)))],
            draw.choice(MODELS),
        )
        for _ in range(60)
    ]


def states(found: list[RefNode]) -> NodeStates:
    free = [[*node.free, *[-1] * (8 - len(node.free))] for node in found]
    return NodeStates(
        np.array([node.cpu for node in found], np.int64),
        np.array(free, np.int64),
        np.array([MODELS.index(node.model) for node in found], np.int64),
    )


def test_many_nodes_at_once_and_each_alone_have_the_sums_of_plain_definitions():
    kinds, found = shared(), nodes()
    expected = [fragmentation_by_category(node, kinds) for node in found]
    fragmentation = Fragmentation(kinds)
    assert fragmentation.fragmentation_of(states(found), MODELS).tolist() == expected
    alone = [fragmentation.fragmentation_of(states([node]), MODELS).item() for node in found]
    assert alone == expected
    assert len(set(expected)) > 20


def test_shares_in_any_unit_are_divided_by_their_sum():
    found = nodes()
    one = Fragmentation(shared()).fragmentation_of(states(found), MODELS)
    np.testing.assert_allclose(
        Fragmentation(KINDS).fragmentation_of(states(found), MODELS), one, rtol=1e-12
    )
