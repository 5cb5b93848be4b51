"""Plays kubelet for any number of fake nodes; an API client like any other.

Belongs here: registration, heartbeats, and the life of a bound pod. The room knows
the API server only through `moorage.client`, so it works against a real one too. No containers run.

- ``agents`` runs everything: it watches nodes and pods, keeps time, and writes (``writers``).
- ``pod_life`` decides what happens to pods: ``admission`` at first sight, ``pod_containers`` and
  ``container_run`` while they run, ``resizing`` when they are resized. ``kubelet_status`` builds
  the written status. `moorage.nodeshapes` reads annotations and commands, and how a pod is ended.
- ``node_bodies`` makes nodes of templates; ``extended_resources`` follows their capacity, and
  ``pressure`` their annotations.

``docs/reference/node-annotations.md`` describes the annotations for users.
"""
