"""Capacity of a cluster from its inputs: each question in a model of its own."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.model import ClusterModel
from moorage.what_if.capacity.count import Kind, need_of, room_in
from moorage.what_if.capacity.room import Need, Room
from moorage.what_if.capacity.shapes import Shape, shapes_to_try
from moorage.what_if.course import scene_of


def room_for(inputs: ClusterInputs, mix: Sequence[Kind], *, most: int) -> Room:
    """Place pods until one finds no node."""
    return room_in(scene_of(ClusterModel(inputs)), mix, most=most)


def shapes_of(inputs: ClusterInputs) -> Sequence[Shape]:
    """Return the shapes of the nodes, the smallest first."""
    return shapes_to_try(ClusterModel(inputs)).tried


def nodes_needed(inputs: ClusterInputs, shapes: Sequence[Shape]) -> list[Need]:
    """Return for each shape how many nodes are needed; nothing where no pod waits."""
    needs = [need_of(ClusterModel(inputs), shape) for shape in shapes]
    return [need for need in needs if need is not None]
