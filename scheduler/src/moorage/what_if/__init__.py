"""Tries changes on a model of a cluster: what would happen, and what would fit.

The model is `moorage.virtual`. Objects come in as lists, from a dump or a server, or as frames from
a running scheduler; this room reads no file and calls no server.

- `change` has what can be changed, and `changes` makes it happen.
- `course` compares before and after: `consequences`, and how full nodes are (`fullness`).
- `owners` are the controllers of pods, `claims` what becomes of claims, and `rules` what an API
  server would refuse, change or hold back.
- `capacity` counts what fits.
- `wire` has both questions as they go over HTTP, and `limits` what an answer may cost. A running
  scheduler has them answered by another process (`answering`).
"""
