"""Tries changes on a cluster that exists only in memory: what would happen, and what would fit.

Objects come in as lists, from a dump or a server, or as frames from a running scheduler; this room
reads no file and calls no server.

- `lists` reads objects, `world` puts a scheduler's deciding half over them, and `live_objects`
  keeps both in step when an object changes.
- `rehearsal` lets time pass and `deciding` decides about pods, with `carrying` and `agenda` in
  place of the API server.
- `pod_claims` keeps the resource claims of pods: made from templates, written, and freed.
- `remaking` says which owners make pods again, `bounds` what namespaces refuse, and `budgets` which
  evictions are allowed.
- `change` has what can be changed, and `changes` makes it happen. `workloads` and `stateful_sets`
  are the owners of pods, `admission` the rules of new objects (of `kinds`).
- `course` compares before and after: `consequences`, and how full nodes are (`fullness`).
- `capacity` counts what fits; its answers are in `room`.
- `wire` has both questions as they go over HTTP, `answers` computes their answers.
- A running scheduler has them answered by another process: `question` asks it, `process` is its
  program. `mirrored_state` tells it what has changed (`messages`), and `mirror` takes that in.
"""
