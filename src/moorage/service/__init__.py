"""Awaits on behalf of the scheduler and owns every task.

`scheduler` wires the rooms together; `ingest` turns watch events into stimuli for the state;
`pump` pops, decides and yields; `binding_cycle` carries out a decision to bind; `failure` returns a
pod to the queue; `pod_writes` keeps the writes about one pod in order. Plugins come as a registry.
"""
