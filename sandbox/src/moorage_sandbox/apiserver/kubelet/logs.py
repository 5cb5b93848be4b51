"""``pods/log``: lines about the runs of a fake container, made from the status of its pod.

Place in the flow: `server` calls this module for ``GET .../pods/NAME/log``. Errors are those a real
server and kubelet answer with. A log has a line for the start of a run and one for its end.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from moorage.base.clock import parse_rfc3339
from moorage.kinds.kind import Obj
from moorage.kinds.status import bad_request, method_not_allowed
from moorage_sandbox.apiserver.catalog import Target
from moorage_sandbox.apiserver.kubelet.containers import requested_container, spec_of, status_of
from moorage_sandbox.apiserver.kubelet.log_options import LogOptions, read_log_options
from moorage_sandbox.apiserver.verbs.reading import get_record
from moorage_sandbox.apiserver.wire.requests import Query, Reply, Request
from moorage_sandbox.apiserver.world import World

Line = tuple[str, str]
"""A moment (RFC 3339) and a text."""

# How long a quiet log waits before it looks again; a change of a pod wakes it at once.
_WAIT_SECONDS = 60.0
_TEXT = "text/plain"


class PodLogs:
    """Answers calls for logs.

    Parameters
    ----------
    world
        The resources of the server, which include the pods.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._closing = False

    def close(self) -> None:
        """End every log that is followed; the store wakes them."""
        self._closing = True

    def answer_logs(self, target: Target, request: Request, query: Query) -> Reply:
        """Answer a call.

        Raises
        ------
        StatusError
            400: the pod has no such container, or the container no log yet. 404: no such pod.
            405: another method than GET. 422: parameters that make no sense.
        """
        if request.method != "GET":
            raise method_not_allowed()
        options = read_log_options(query, target.name, self._world.clock.now_ns())
        pod = get_record(self._world.store, target).decode()
        container = requested_container(pod, query)
        if not pod["spec"].get("nodeName"):
            return Reply(status=200, body=b"", content_type=_TEXT)
        lines = _lines(pod, container, previous=options.previous)
        shown = _chosen(lines, options)
        if options.follow and not options.previous and _runs(pod, container):
            body: bytes | AsyncIterator[bytes]
            body = self._follow(target, pod, container, shown, options)
        else:
            body = shown[: options.limit_bytes]
        return Reply(status=200, body=body, content_type=_TEXT)

    async def _follow(
        self, target: Target, pod: Obj, container: str, shown: bytes, options: LogOptions
    ) -> AsyncIterator[bytes]:
        """Yield the present lines, then the last line when the run has ended."""
        left = options.limit_bytes
        yield shown[:left]
        left = None if left is None else left - len(shown)
        restarts = (status_of(pod, container) or {}).get("restartCount", 0)
        shelf = self._world.store.shelf(target.served.shelf)
        key, last = (target.namespace, target.name), pod
        with shelf.log.reading():
            while not self._closing and (left is None or left > 0):
                record = shelf.get(key)
                if record is None or record.uid != pod["metadata"]["uid"]:
                    return
                if record.version != int(last["metadata"]["resourceVersion"]):
                    last = record.decode()
                    now = status_of(last, container) or {}
                    again = now.get("restartCount", 0) != restarts
                    if again or not _runs(last, container):
                        lines = _lines(last, container, previous=again)
                        yield _written(lines[1:], options)[:left]
                        return
                await shelf.log.wait_for_change(_WAIT_SECONDS)


def _runs(pod: Obj, container: str) -> bool:
    state = (status_of(pod, container) or {}).get("state") or {}
    return "running" in state


def _lines(pod: Obj, container: str, *, previous: bool) -> list[Line]:
    """Return the log of a run.

    Raises
    ------
    StatusError
        400: the run does not exist (kubernetes v1.36 pkg/kubelet, validateContainerLogStatus).
    """
    name = pod["metadata"]["name"]
    status = status_of(pod, container)
    if status is None:
        raise bad_request(f'container "{container}" in pod "{name}" is not available')
    state, last = status.get("state") or {}, status.get("lastState") or {}
    count = int(status.get("restartCount") or 0)
    ended = last.get("terminated")
    if previous:
        if not ended:
            text = f'previous terminated container "{container}" in pod "{name}" not found'
            raise bad_request(text)
        # A container that waits for its next run has not counted the restart yet.
        run = count + 1 if "waiting" in state else count
        return _log_lines(pod, container, run, ended, ended)
    if "running" in state:
        return _log_lines(pod, container, count + 1, state["running"], None)
    ended = state.get("terminated") or ended
    if not ended:
        reason = (state.get("waiting") or {}).get("reason") or "ContainerCreating"
        raise bad_request(f'container "{container}" in pod "{name}" is waiting to start: {reason}')
    return _log_lines(pod, container, count + 1, ended, ended)


def _log_lines(
    pod: Obj, container: str, run: int, began: dict[str, Any], ended: dict[str, Any] | None
) -> list[Line]:
    meta = pod["metadata"]
    image = spec_of(pod, container).get("image", "")
    started = began.get("startedAt") or pod["status"].get("startTime") or ""
    text = (
        f"moorage: no process runs here, so there is no output; container {container} (image "
        f"{image}) of pod {meta['namespace']}/{meta['name']} is played on node "
        f"{pod['spec']['nodeName']}, run {run}"
    )
    lines = [(started, text)]
    if ended is not None:
        code = ended.get("exitCode", 0)
        lines.append((ended.get("finishedAt") or started, f"moorage: ended with exit code {code}"))
    return lines


def _chosen(lines: list[Line], options: LogOptions) -> bytes:
    if options.since_ns:
        lines = [each for each in lines if parse_rfc3339(each[0]) >= options.since_ns]
    if options.tail is not None:
        lines = lines[max(0, len(lines) - options.tail) :]
    return _written(lines, options)


def _written(lines: list[Line], options: LogOptions) -> bytes:
    return "".join(
        f"{moment} {text}\n" if options.timestamps else f"{text}\n" for moment, text in lines
    ).encode()
