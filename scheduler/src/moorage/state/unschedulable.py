"""unschedulablePods: pods that wait for a cluster event which may help, and gated pods.

Pods are filed by profile and rejectors, and there by likeness. An event is judged once for all pods
that are equal, and only pods that it may help are touched. They are also found by the claims that
they name, since each of a thousand pods may wait for a claim of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple, Protocol, TypeAlias

from moorage.api.claims import ClaimUsers
from moorage.api.pod import Pod
from moorage.state.contracts import GATED, UNSCHEDULABLE, QueueObserver
from moorage.state.queued_pod import Likeness, PodKey, QueuedPod
from moorage.state.wakeups import Requeue

FileKey: TypeAlias = tuple[str, frozenset[str]]
"""(profile, rejectors)."""

_SKIP = Requeue.SKIP


class Judge(Protocol):
    """The meaning of one event for the waiting pods; `moorage.state.judging` has it."""

    def concerned(
        self, profile: str, rejectors: frozenset[str]
    ) -> Collection[PodKey | ClaimUsers] | None:
        """Return the pods with these rejectors that may be helped; None means all of them."""
        ...

    def replicas_agree(self, profile: str, rejectors: frozenset[str]) -> bool:
        """Whether equal pods with these rejectors get the same answer."""
        ...

    def answer_for(self, equal: Mapping[PodKey, QueuedPod]) -> Requeue | None:
        """Judge equal pods at once; None if each has to be judged by itself."""
        ...


class _Filed(NamedTuple):
    arrival: int
    queued: QueuedPod
    file: FileKey
    likeness: Likeness
    counted_as: str
    claims: tuple[ClaimUsers, ...]


class UnschedulablePods:
    """Pods waiting for an event.

    Parameters
    ----------
    observer
        Counts the gated and the other pods.
    queued
        The pods of all sub-queues by key, in which those of this one are kept.
    """

    def __init__(self, observer: QueueObserver, queued: dict[PodKey, QueuedPod]) -> None:
        self._observer = observer
        self._queued = queued
        self._filed: dict[PodKey, _Filed] = {}
        # The same pods by (profile, rejectors), and there by likeness. Nothing in it is empty.
        self._files: dict[FileKey, dict[Likeness, dict[PodKey, QueuedPod]]] = {}
        # The pods that name claims, by claim. No entry is empty.
        self._users: dict[ClaimUsers, dict[PodKey, None]] = {}
        self._arrivals = 0
        self.gated_count = 0
        """Number of gated pods."""

    def __len__(self) -> int:
        return len(self._filed)

    def __contains__(self, key: PodKey) -> bool:
        return key in self._filed

    def get(self, key: PodKey) -> QueuedPod | None:
        """Return the pod of this key, or None."""
        found = self._filed.get(key)
        return found.queued if found is not None else None

    def put_pod(self, queued: QueuedPod) -> bool:
        """Add a pod, or file it again after its gate or rejectors changed.

        Returns
        -------
        bool
            Whether the key is new here.
        """
        entry = self._filed.get(queued.key)
        counted_as = GATED if queued.gating_plugin else UNSCHEDULABLE
        if entry is None:
            self._arrivals += 1
            arrival = self._arrivals
        else:
            arrival = entry.arrival
            self._unfile(entry)
        if entry is None or entry.counted_as != counted_as:
            if entry is not None:
                self._count(entry.counted_as, -1)
            self._count(counted_as, 1)
        filed_as = (queued.pod.spec.scheduler_name, queued.rejectors)
        likeness = queued.likeness
        claims = _named_claims(queued.pod)
        item = _Filed(arrival, queued, filed_as, likeness, counted_as, claims)
        self._filed[queued.key] = item
        self._queued[queued.key] = queued
        self._files.setdefault(filed_as, {}).setdefault(likeness, {})[queued.key] = queued
        for claim in item.claims:
            self._users.setdefault(claim, {})[queued.key] = None
        return entry is None

    def remove(self, key: PodKey) -> QueuedPod | None:
        """Take a pod out; None if it is not here."""
        entry = self._filed.pop(key, None)
        if entry is None:
            return None
        del self._queued[key]
        self._unfile(entry)
        self._count(entry.counted_as, -1)
        return entry.queued

    def candidates(self, event: Judge) -> list[tuple[QueuedPod, Requeue | None]]:
        """Return the pods that an event may move, in arrival order, each with the event's answer.

        The answer is None for a pod that has to be judged by itself.
        """
        chosen: dict[PodKey, Requeue | None] = {}
        for file in self._files:
            named = event.concerned(*file)
            if named is not None:
                keys = (key for key in self._keys(named) if key in self._filed)
                chosen.update((key, None) for key in keys if self._filed[key].file == file)
                continue
            agree = event.replicas_agree(*file)
            for equal in self._files[file].values():
                answer = event.answer_for(equal) if agree else None
                if answer is not _SKIP:
                    chosen.update(dict.fromkeys(equal, answer))
        filed = self._filed
        ordered = sorted(chosen, key=lambda key: filed[key].arrival)
        return [(filed[key].queued, chosen[key]) for key in ordered]

    def queued_pods(self) -> list[QueuedPod]:
        """Return all pods in arrival order."""
        return [item.queued for item in sorted(self._filed.values(), key=lambda i: i.arrival)]

    def validate(self) -> None:
        """Check that both indexes hold the same pods, each under its present rejectors."""
        by_file = {
            key: (file, likeness, queued)
            for file, likenesses in self._files.items()
            for likeness, equal in likenesses.items()
            for key, queued in equal.items()
        }
        filed = {key: (it.file, it.likeness, it.queued) for key, it in self._filed.items()}
        assert by_file == filed, "files and pods differ"
        assert all(self._files.values()), "an empty file was kept"
        assert all(all(each.values()) for each in self._files.values()), "an empty set was kept"
        for key, item in self._filed.items():
            queued = item.queued
            assert key == queued.key, f"{queued!r} is filed under {key}"
            assert item.file == (queued.profile, queued.rejectors), f"{queued!r} is misfiled"
            assert item.likeness == queued.likeness, f"{queued!r} is filed with other pods"
            gauge = GATED if queued.gated else UNSCHEDULABLE
            assert item.counted_as == gauge, f"{queued!r} is counted as {item.counted_as}"
        users = dict[ClaimUsers, dict[PodKey, None]]()
        for key, item in self._filed.items():
            for claim in item.claims:
                users.setdefault(claim, {})[key] = None
        assert users == self._users, "users of claims and pods differ"
        gated = sum(item.counted_as == GATED for item in self._filed.values())
        assert gated == self.gated_count, "gated pods are miscounted"

    def _count(self, counted_as: str, delta: int) -> None:
        self._observer.pending(counted_as, delta)
        if counted_as == GATED:
            self.gated_count += delta

    def _keys(self, keys: Collection[PodKey | ClaimUsers]) -> Iterator[PodKey]:
        for each in keys:
            if isinstance(each, ClaimUsers):
                yield from self._users.get(each, ())
            else:
                yield each

    def _unfile(self, item: _Filed) -> None:
        key = item.queued.key
        file = self._files[item.file]
        equal = file[item.likeness]
        del equal[key]
        if not equal:
            del file[item.likeness]
        if not file:
            del self._files[item.file]
        for claim in item.claims:
            users = self._users[claim]
            del users[key]
            if not users:
                del self._users[claim]


def _named_claims(pod: Pod) -> tuple[ClaimUsers, ...]:
    """Return the claims that a pod's spec and status name, each once."""
    if not pod.spec.resource_claims:
        return ()
    names = [each.resource_claim_name for each in pod.spec.resource_claims]
    names += [each.resource_claim_name for each in pod.status.resource_claim_statuses]
    namespace = pod.metadata.namespace
    return tuple(ClaimUsers(namespace, name) for name in dict.fromkeys(names) if name is not None)
