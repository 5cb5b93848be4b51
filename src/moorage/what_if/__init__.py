"""Tries changes on a cluster that exists only in memory: what would happen, and what would fit.

Objects come in as lists, from a dump or a server; this room reads no file and calls no server.
`lists` reads objects, `world` puts a scheduler's deciding half over them. `live_objects`
keeps the two in step when an object changes. `rehearsal` lets time pass, `deciding` decides about
pods, with `carrying` and `agenda` in place of the API server. `changes` has what can be changed,
`workloads` and `stateful_sets` the owners of pods, `admission` the rules of new objects. `course`
compares before and after, `capacity` counts what fits.
"""
