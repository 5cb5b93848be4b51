"""The conformance runner: recorded decisions of kube-scheduler compared with moorage's own.

Belongs here: reading recordings, running a recorded case through the plugins and the engine, and
reporting differences. This package starts no server and waits for nothing.

- `runner`: runs all cases of all files; the command line calls it.
- `recordings`: the file format, and cases read from files.
- `needs`: what a case needs that moorage does not have.
- `case`: runs one case; the modules below run single modes.
- `groups`, `hints`, `sampling`, `extender`: pod groups, queueing hints, sampled nodes, extenders.
- `vectors`: cases of upstream's table tests.
- `world`: the recorded cluster as columns, profiles and cycles.
- `devices`: the resource claims of a recorded case.
- `faults`: places where a recording holds a fault of kube-scheduler that moorage does not have.
- `compare`: two decisions compared field by field.
- `report`: tallies by family.
"""
