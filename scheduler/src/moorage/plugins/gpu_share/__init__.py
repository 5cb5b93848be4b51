"""Whole GPUs and shares of one GPU: which devices of which node a pod gets.

`GpuShare` filters nodes and keeps account of the devices. Exactly one of the other plugins, a
policy, scores the nodes and chooses the device of a pod that asks for a share of one. A profile
without a policy chooses the device that leaves the least.

- `gpu_share`: the plugin GpuShare.
- `gpu_random`: the policy GpuRandom.
- `gpu_dot_product`: the policy GpuDotProduct.
- `gpu_clustering`: the policy GpuClustering.
- `gpu_packing`: the policy GpuPacking.
- `gpu_best_fit`: the policy GpuBestFit.
- `gpu_fragmentation`: the policy GpuFragmentation, fragmentation gradient descent (FGD).
- `gpu_lookahead`: the policy GpuLookahead.
- `asking`: what a pod asks for, and the GPUs that a bound pod holds.
- `devices`: the free part of every device, by node.
- `policy`: the common part of the policies.
- `sharing`: what the plugins of one profile have in common.
- `typical`: the GPUs of a node that the pods to come can use.
- `categories`: the fragmentation of a node, summed as the published program does.
- `known_states`: amounts of states of nodes, each state computed once.
- `gradient`: nodes and devices, graded by the loss of placing a pod there.
- `fragmentation`: the fragmentation of a cluster, pod after pod, for experiments.
"""
