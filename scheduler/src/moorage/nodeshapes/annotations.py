"""Reads the annotations that control how a node plays a pod.

An annotation holds for every regular container of the pod. With ``.NAME`` behind it, it holds for
the container of this name, init containers included. Values of ``run-seconds`` and ``exit-code``
may be lists: one value for each run of the container, the last one for all further runs. Without an
annotation the command of the container counts, if it tells (`commands`).
"""

from __future__ import annotations

from typing import Final

from moorage.api.node import Node
from moorage.api.pod import Container, Pod, Probe
from moorage.nodeshapes.commands import course_of

PLAYED = "moorage.dev/played"
"""Annotation of nodes of other clients: ``true`` asks the agents to play the node as well."""
_PLAYED_BY_KWOK: Final = ("kwok.x-k8s.io/node", "fake")
START_SECONDS: Final = "moorage.dev/start-seconds"
STARTUP_SECONDS: Final = "moorage.dev/startup-seconds"
READY_SECONDS: Final = "moorage.dev/ready-seconds"
RUN_SECONDS: Final = "moorage.dev/run-seconds"
EXIT_CODE: Final = "moorage.dev/exit-code"
STOP_SECONDS: Final = "moorage.dev/stop-seconds"

_NUMBERS: Final = (
    START_SECONDS,
    STARTUP_SECONDS,
    READY_SECONDS,
    RUN_SECONDS,
    STOP_SECONDS,
    EXIT_CODE,
)
_LISTS: Final = (RUN_SECONDS, EXIT_CODE)
_NUMBER_LIMIT: Final = 1e9  # a guess: 30 years are enough, and nanoseconds still fit 64 bits
# A guess: long enough to see a Job at work.
_JOB_RUN_SECONDS: Final = 5.0


def asks_for_agent(node: Node) -> bool:
    """Whether the annotations of a node of another client ask that the agents play it.

    Notes
    -----
    kwok plays nodes with its own annotation when it is started with
    ``--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake``.
    """
    annotations = node.metadata.annotations
    key, value = _PLAYED_BY_KWOK
    return annotations.get(PLAYED) == "true" or annotations.get(key) == value


def number(pod: Pod, annotation: str, default: float) -> float:
    """Read an annotation that is one number of at least 0; the default for any other annotation."""
    found = _numbers(pod.metadata.annotations.get(annotation, ""))
    return found[0] if found else default


def run_seconds(pod: Pod, container: Container, run: int, *, init: bool) -> float | None:
    """Return how long a container runs by itself, seconds; None for ever.

    Parameters
    ----------
    run
        Number of the run, from 0.
    init
        The container is an init container.
    """
    told = _of_run(pod, container, RUN_SECONDS, run, init=init)
    if told is not None:
        return told
    if (course := course_of(container)) is not None:
        return course.seconds
    if init:
        return None if container.is_restartable_init else 0.0
    return _JOB_RUN_SECONDS if _is_of_job(pod) else None


def exit_code(pod: Pod, container: Container, run: int, *, init: bool) -> int:
    """Return the exit code of a run of a container."""
    told = _of_run(pod, container, EXIT_CODE, run, init=init)
    if told is not None:
        return int(told)
    course = course_of(container)
    return course.exit_code if course is not None else 0


def startup_seconds(pod: Pod, container: Container, *, init: bool) -> float:
    """Return how long a running container is not started, seconds."""
    return _delay(pod, container, STARTUP_SECONDS, container.startup_probe, init=init)


def ready_seconds(pod: Pod, container: Container, *, init: bool) -> float:
    """Return how long a running container is not ready, seconds; it is started by then."""
    told = _delay(pod, container, READY_SECONDS, container.readiness_probe, init=init)
    return max(told, startup_seconds(pod, container, init=init))


def faults(pod: Pod) -> list[str]:
    """Return a sentence for each annotation of the pod that cannot be read."""
    names = [each.name for each in (*pod.spec.init_containers, *pod.spec.containers)]
    errors = []
    for annotation, value in sorted(pod.metadata.annotations.items()):
        name, _, container = annotation.removeprefix("moorage.dev/").partition(".")
        name = f"moorage.dev/{name}"
        if not annotation.startswith("moorage.dev/") or name not in _NUMBERS:
            continue
        numbers = _numbers(value)
        if container and container not in names:
            errors.append(
                f"{annotation}: the pod has no container {container!r}, so this is ignored"
            )
        elif not numbers:
            errors.append(f"{annotation}: {value!r} is no number >= 0 and is ignored")
        elif len(numbers) > 1 and name not in _LISTS:
            errors.append(f"{annotation}: {value!r} is a list, of which the first number is taken")
    return errors


def _delay(
    pod: Pod, container: Container, annotation: str, probe: Probe | None, *, init: bool
) -> float:
    told = _of_run(pod, container, annotation, 0, init=init)
    if told is not None:
        return told
    return float(probe.initial_delay_seconds) if probe else 0.0


def _of_run(
    pod: Pod, container: Container, annotation: str, run: int, *, init: bool
) -> float | None:
    pod_annotations = pod.metadata.annotations
    if not pod_annotations:
        return None
    value = pod_annotations.get(f"{annotation}.{container.name}")
    if value is None and not init:
        value = pod_annotations.get(annotation)
    found = _numbers(value or "")
    return found[min(run, len(found) - 1)] if found else None


def _numbers(text: str) -> list[float]:
    """Read numbers of at least 0, separated by commas; empty if one of them is no such number."""
    if not text:
        return []
    try:
        found = [float(each) for each in text.split(",")]
    except ValueError:
        return []
    return found if all(0 <= each < _NUMBER_LIMIT for each in found) else []


def _is_of_job(pod: Pod) -> bool:
    return any(owner.controller and owner.kind == "Job" for owner in pod.metadata.owner_references)
