"""Plays kubelet for any number of fake nodes; an API client like any other.

Belongs here: node templates, registration, heartbeats, and the life of a bound pod. It knows the
API server only through `moorage.client`, so it works against a real one too. No containers run.

A pod may say how it wants to be played, by annotations (numbers are seconds, fractions allowed):

``moorage.dev/start-seconds``
    From ContainerCreating to Running; 1 if absent.
``moorage.dev/run-seconds``
    From Running to its end, whatever its restartPolicy; absent: 5 for pods of a Job, all others
    run until deleted.
``moorage.dev/exit-code``
    With which its containers end after ``run-seconds``; 0, the default, makes it Succeeded,
    anything else Failed.
``moorage.dev/stop-seconds``
    How long it takes to stop when deleted; 1 if absent, never longer than its grace period.
"""
