"""Awaits on behalf of the scheduler and owns every task.

`scheduler` wires the rooms together; `ingest` turns watch events into stimuli for the state;
`pump` pops, decides and yields; `effects` carries a decision out; `failure` returns a pod to the
queue; `pod_writes` keeps the writes about one pod in order. Plugins are handed in as a registry.
"""
