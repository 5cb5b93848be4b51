"""The one assembly of an embedded cluster: clock, streams, storage, transports, controllers.

Belongs here: what `moorage up`, the fault simulation, benchmarks and tests have in common when they
put an API server, node agents, controllers and schedulers together. A user of this room says in
`ClusterSettings` what is special about its cluster, and adds what only it has.

- ``assembly`` opens the API server, and starts controllers and node agents over it.
- ``in_process`` carries calls to a server in the same process.
- ``schedulers`` makes a scheduler over one transport. It is a module of its own because a process
  that runs no scheduler should not import one.
"""
