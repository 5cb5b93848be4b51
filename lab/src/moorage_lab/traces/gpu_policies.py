"""Ready configurations for pods that share GPUs: GpuShare, and one policy that decides alone.

Place in the flow: `inputs` to here to `variants`. Policies that look at the pods to come are given
the most frequent kinds of the scenario's own pods.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from moorage.api.codec import decode
from moorage.api.pod import Pod
from moorage.base.errors import UsageError
from moorage.config.plugin_args_gpu import GpuShareArgs
from moorage.config.types import API_VERSION, KIND
from moorage.plugins.gpu_share.asking import Asking
from moorage.plugins.gpu_share.policies import ACCOUNT, EXPECTING, POLICIES, Kind, typical_pods
from moorage.plugins.gpu_share.sharing import cpu_of
from moorage.snapshot.pod_info import PodInfo
from moorage_lab.traces.inputs import Inputs


def policy_document(policy: str, inputs: Inputs) -> dict[str, Any]:
    """Return the scheduler's configuration for a policy.

    Parameters
    ----------
    policy
        A key of `POLICIES`.
    inputs
        The pods that come.

    Raises
    ------
    UsageError
        The policy looks at the pods to come, and none of them asks for GPUs.
    """
    plugin = POLICIES[policy]
    alone = {"disabled": [{"name": "*"}], "enabled": [{"name": plugin}]}
    enabled = {"enabled": [{"name": ACCOUNT}]}
    profile: dict[str, Any] = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": enabled, "preScore": alone, "score": alone},
    }
    if policy in EXPECTING:
        typical = typical_pods(_kinds(inputs, policy))
        args = {"typicalPods": [msgspec.to_builtins(pod) for pod in typical]}
        profile["pluginConfig"] = [{"name": plugin, "args": args}]
    return {"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}


def _kinds(inputs: Inputs, policy: str) -> Counter[Kind]:
    """Return the number of pods of each kind, of all sources together."""
    asking = Asking(GpuShareArgs())
    kinds: Counter[Kind] = Counter()
    for group in inputs.groups:
        for come in group.pods:
            pod = PodInfo(decode(Pod, come.pod))
            ask = asking.gpu_ask_of(pod)
            kinds[cpu_of(pod), ask.milli, ask.gpus, "|".join(ask.models)] += 1
    if not any(gpus for _, _, gpus, _ in kinds):
        raise UsageError(
            f"gpuPolicy {policy} looks at the GPUs of the pods to come, and no pod asks for GPUs"
        )
    return kinds
