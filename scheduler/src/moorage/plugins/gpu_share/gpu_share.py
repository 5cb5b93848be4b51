"""GpuShare: nodes with the GPUs that a pod asks for, and account of the devices.

Filter looks for devices, Reserve chooses them, and PreBind writes them into an annotation of the
pod, where the device plugin of the node reads them. CPU and memory are judged by NodeResourcesFit.

Rules: GPU sharing of "Beware of Fragmentation" (Weng et al., USENIX ATC 2023), as in
``pkg/simulator/plugin/open-gpu-share.go`` of its simulator.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import numpy as np

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.base.errors import ApiError, ConfigError, TransportError
from moorage.config.plugin_args_gpu import GpuShareArgs
from moorage.config.plugin_args_gpu import validate_gpu_share_args as validate
from moorage.framework.capabilities import Capabilities, Reads
from moorage.framework.cycle_state import CycleState, StateKey
from moorage.framework.handle import MERGE_PATCH, Handle
from moorage.framework.insight.relaxations import Ladder
from moorage.framework.points import EventRegistration, PreFilterResult
from moorage.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    FilterAnswer,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from moorage.plugins.gpu_share.asking import GpuAsk
from moorage.plugins.gpu_share.devices import DeviceColumns, whole_devices
from moorage.plugins.gpu_share.relaxing import smaller_asks
from moorage.plugins.gpu_share.sharing import RowRoom, cpu_of, sharing_of
from moorage.snapshot.pod_info import PodInfo, info_of
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.shifted import RowSums
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

WRONG_MODEL: Final = "node(s) had no GPU of a requested model"
TOO_FEW: Final = "node(s) had fewer GPUs than requested"
NO_WHOLE: Final = "node(s) didn't have enough wholly free GPUs"
NO_SHARE: Final = "node(s) had no GPU with a large enough free share"
TAKEN: Final = "the GPUs of the node were taken meanwhile"

_ASK: StateKey[GpuAsk] = StateKey("PreFilterGpuShare")


class GpuShare:
    """PreFilter, Filter, Reserve and PreBind plugin.

    Parameters
    ----------
    args
        Names of annotations, resources and labels.
    handle
        Snapshot, reasons and the client.

    Raises
    ------
    ConfigError
        The arguments are invalid.
    """

    name = "GpuShare"

    def __init__(self, args: GpuShareArgs, handle: Handle) -> None:
        faults = validate(args, "")
        if faults:
            raise ConfigError(faults, source=self.name)
        self._names = args
        self._snapshot = handle.snapshot
        self._client = handle.client
        self._sharing = sharing_of(handle)
        self._sharing.use_names(args)
        self._asking = self._sharing.asking
        self._reason_ids = {
            reason: handle.reasons.intern(reason)
            for reason in (WRONG_MODEL, TOO_FEW, NO_WHOLE, NO_SHARE)
        }

    def capabilities(self) -> Capabilities:
        """Declare that an answer about a row rests on its node and its pods."""
        return Capabilities(
            filter_reads=Reads.NODE | Reads.PODS,
            shape_parts=(self._asking.kind, RESOURCES),
            filter_row=self.filter_row,
            relaxations=self.relaxations,
            held_devices=self._asking.held_devices,
        )

    # -- PreFilter and Filter ------------------------------------------------------------------

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status]:
        """Read what the pod asks for; skip pods without GPUs, reject requests not understood."""
        del snapshot
        ask = self._asking.gpu_ask_of(pod)
        if ask.fault:
            return None, unresolvable(ask.fault)
        if ask.gpus == 0:
            return None, SKIP
        state.write(_ASK, ask)
        return None, SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        """Reject rows without free devices of an admissible model.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin is not enabled.
        """
        del pod
        ask, devices, ids = state.read(_ASK), self._sharing.devices, self._reason_ids
        wrong = ~_admitted(devices, ask)[view.take_rows(devices.model_n)]
        few = view.take_rows(devices.count_n) < ask.gpus
        if ask.is_share:
            full, reason = view.take_rows(devices.largest_n) < ask.milli, NO_SHARE
        else:
            full, reason = view.take_rows(devices.whole_n) < ask.gpus, NO_WHOLE
        if not (wrong | full).any():
            return None
        never, later = Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.UNSCHEDULABLE
        return FilterAnswer.of_checks(
            (few, never, ids[TOO_FEW]),
            (wrong, never, ids[WRONG_MODEL]),
            (full, later, ids[reason]),
        )

    def filter_row(
        self, state: CycleState, pod: PodInfo, row: int, more: RowSums
    ) -> tuple[int, int] | None:
        """Return (0, 0) for a row that passes as in `filter`, which gives the reasons of others."""
        del pod, more
        ask, devices = state.read(_ASK), self._sharing.devices
        if ask.models and devices.models[devices.model_n.item(row)] not in ask.models:
            return None
        if ask.is_share:
            passes = devices.largest_n.item(row) >= ask.milli
        else:
            passes = devices.whole_n.item(row) >= ask.gpus
        return (0, 0) if passes else None

    def relaxations(self, pod: PodInfo) -> Sequence[Ladder]:
        """Return smaller demands of a pod that asks by annotations.

        A pod that asks by resources requests less of them like of any other resource.
        """
        ask = self._asking.annotated(pod)
        if ask is None or ask.fault:
            return ()
        return list(smaller_asks(ask, self._names, self._sharing.devices))

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register pods that free devices, and nodes that may have some."""
        gone = ClusterEvent(Resource.POD, Action.DELETE)
        node = ClusterEvent(
            Resource.NODE,
            Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_LABEL,
        )
        return EventRegistration(gone, self._frees, replicas_agree=True), EventRegistration(node)

    def _frees(self, waiting: Pod, old: object | None, new: object | None) -> bool:
        """Queue when a pod with GPUs has gone."""
        del waiting, new
        return not isinstance(old, Pod) or self._asking.gpu_ask_of(info_of(old)).gpus > 0

    # -- Reserve and PreBind -------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Choose the devices, and hold them until the pod has gone."""
        del state
        ask, row = self._asking.gpu_ask_of(pod), self._snapshot.row_of(node_name)
        if ask.gpus == 0 or row is None:
            return SUCCESS
        devices = self._sharing.devices_before
        free = devices.free_for(row, pod)
        if ask.is_share:
            device = self._sharing.choose(ask, cpu_of(pod), self._room(pod, row, free))
            chosen: tuple[int, ...] = () if device < 0 else (device,)
        else:
            chosen = whole_devices(free, ask.gpus)
        if len(chosen) < ask.gpus:
            return unschedulable(TAKEN)
        devices.hold(pod.uid, node_name, chosen)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Give the devices back."""
        del state
        self._sharing.devices.drop(pod.uid, node_name)

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Answer whether there is an annotation to write."""
        del state, node_name
        return SKIP if self._sharing.devices.devices_of(pod.uid) is None else SUCCESS

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Write the chosen devices into the pod's annotation."""
        del state, node_name
        chosen = self._sharing.devices.devices_of(pod.uid)
        if chosen is None or self._client is None:
            return SUCCESS
        text = "-".join(str(device) for device in chosen)
        annotations = {self._names.index_annotation: text}
        body = {"metadata": {"uid": pod.uid, "annotations": annotations}}
        try:
            await self._client.objects.patch(
                PODS,
                pod.name,
                json.dumps(body).encode(),
                namespace=pod.namespace,
                content_type=MERGE_PATCH,
            )
        except (ApiError, TransportError) as problem:
            return error(f"writing the chosen GPUs of pod {pod.key}: {problem}")
        return SUCCESS

    def _room(self, pod: PodInfo, row: int, free: list[int]) -> RowRoom:
        snapshot = self._snapshot
        left = snapshot.allocatable("cpu").item(row) - snapshot.requested("cpu").item(row)
        if pod.uid in snapshot.table.pods_by_row[row]:  # assumed already
            left += pod.part(RESOURCES).value.balanced.get("cpu", 0)
        return RowRoom(row, free, left, self._sharing.devices_before.model_n.item(row))


def _admitted(devices: DeviceColumns, ask: GpuAsk) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return bool, (models,): the models that a pod admits."""
    if not ask.models:
        return np.ones(len(devices.models), np.bool_)
    return np.array([model in ask.models for model in devices.models], np.bool_)
