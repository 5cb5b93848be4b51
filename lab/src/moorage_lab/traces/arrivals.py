"""When pods come and how long they run: the draws of one seed.

The same seed gives the same arrivals under every configuration, so that configurations are
compared on the same pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from moorage.api.codec import decode
from moorage.api.coscheduling import NAME_LABEL
from moorage.api.pod import Pod
from moorage.api.requests import pod_requests, to_units
from moorage.base.rng import Random, Streams
from moorage_lab.traces.inputs import Come, Group, Inputs
from moorage_lab.traces.jobs.laws import daily_times, run_seconds_of
from moorage_lab.traces.scenario import Arrivals, seconds_of


class Planned(msgspec.Struct, frozen=True):
    """A pod that comes.

    Parameters
    ----------
    at
        Seconds after the begin.
    pod
        The pod, without uid.
    runs
        Seconds that it runs; None for ever.
    group
        Its source, by number.
    """

    at: float
    pod: Pod
    runs: float | None
    group: int


def amounts_of(pod: Pod) -> dict[str, int]:
    """Return the requests of a pod by resource: cpu in millicores, the rest in bytes or units."""
    requests = pod_requests(pod, use_status=False, pod_level=True)
    return {name: to_units(name, amount) for name, amount in requests.items()}


def planned(inputs: Inputs, streams: Streams, capacity: Mapping[str, int]) -> list[Planned]:
    """Return the pods that come, in order.

    Parameters
    ----------
    streams
        The random streams of the seed.
    capacity
        Sums of the nodes' allocatable amounts, by resource.
    """
    pods = [[(decode(Pod, each.pod), each) for each in group.pods] for group in inputs.groups]
    if inputs.load is not None:
        resource = inputs.load.resource
        target = inputs.load.share * capacity.get(resource, 0)
        pods = _loaded(pods, resource, target, streams.stream("simulate/load"))
    found: list[Planned] = []
    for number, (group, there) in enumerate(zip(inputs.groups, pods, strict=True)):
        found += _of_group(number, group, there, streams)
    return sorted(found, key=lambda each: each.at)


def _of_group(
    number: int, group: Group, pods: list[tuple[Pod, Come]], streams: Streams
) -> list[Planned]:
    rng = streams.stream(f"simulate/arrivals/{number}")
    jobs = _jobs_of(pods) if group.members > 1 else [[each] for each in pods]
    if group.arrivals.order == "shuffled":
        rng.shuffle(jobs)
    times = _times(group.arrivals, [members[0][1].at for members in jobs], rng)
    lengths = streams.stream(f"simulate/run-times/{number}")
    plan = []
    for at, members in zip(times, jobs, strict=True):
        runs = run_seconds_of(group.run_time, members[0][1].runs, group.run_times, lengths)
        plan += [Planned(at, pod, runs, number) for pod, _ in members]
    return plan


def _jobs_of(pods: Sequence[tuple[Pod, Come]]) -> list[list[tuple[Pod, Come]]]:
    """Return the pods by job, in the order of their first members."""
    jobs: dict[tuple[str, str], list[tuple[Pod, Come]]] = {}
    for pod, come in pods:
        jobs.setdefault((pod.namespace, pod.metadata.labels[NAME_LABEL]), []).append((pod, come))
    return list(jobs.values())


def _times(arrivals: Arrivals, times: Sequence[float | None], rng: Random) -> list[float]:
    """Return the arrivals of the pods of a source, seconds after the begin."""
    after, every = seconds_of(arrivals.after), seconds_of(arrivals.every) / arrivals.speed
    count = len(times)
    match arrivals.kind:
        case "given":
            known = [each for each in times if each is not None]
            first = min(known, default=0.0)
            return [
                after + (0.0 if each is None else each - first) / arrivals.speed for each in times
            ]
        case "together":
            return [after] * count
        case "spaced":
            return [after + every * number for number in range(count)]
        case "bursts":
            return [after + every * (number // arrivals.size) for number in range(count)]
        case "daily":
            swing, peak = arrivals.swing, arrivals.peak_hour
            daily = daily_times(count, every, rng, peak_hour=peak, swing=swing)
            return [after + each for each in daily]
        case "poisson":
            found, now = [], after
            for _ in range(count):
                now += rng.expovariate(1 / every)
                found.append(now)
            return found


def _loaded(
    pods: list[list[tuple[Pod, Come]]], resource: str, target: float, rng: Random
) -> list[list[tuple[Pod, Come]]]:
    """Return pods that ask for `target` together: some are left out, or come several times.

    Copies are drawn from all pods, until the next one would ask for more than the target.
    """
    pool = [
        (group, index, amounts_of(pod).get(resource, 0))
        for group, there in enumerate(pods)
        for index, (pod, _come) in enumerate(there)
    ]
    total = sum(amount for _, _, amount in pool)
    if not total:
        return pods
    if total > target:
        order = list(pool)
        rng.shuffle(order)
        out = set()
        for group, index, amount in order:
            if total <= target:
                break
            out.add((group, index))
            total -= amount
        return [
            [each for index, each in enumerate(there) if (group, index) not in out]
            for group, there in enumerate(pods)
        ]
    groups = [list(there) for there in pods]
    copies = 0
    while True:
        group, index, amount = pool[rng.randrange(len(pool))]
        if total + amount > target:
            return groups
        copies += 1
        total += amount
        pod, come = pods[group][index]
        metadata = msgspec.structs.replace(pod.metadata, name=f"{pod.name}-copy-{copies}")
        groups[group].append((msgspec.structs.replace(pod, metadata=metadata), come))


def most_common(pods: Sequence[Planned], *, share: float) -> list[tuple[dict[str, int], float]]:
    """Return the requests that most pods have, and the share of each among them.

    Parameters
    ----------
    share
        The requests are taken from the most common on, until so many of the pods have one of them.

    Notes
    -----
    The typical pods of Weng et al., "Beware of Fragmentation", USENIX ATC 2023.
    """
    counts: dict[tuple[tuple[str, int], ...], int] = {}
    for each in pods:
        key = tuple(sorted(amounts_of(each.pod).items()))
        counts[key] = counts.get(key, 0) + 1
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    taken, covered = [], 0
    for key, count in ranked:
        if covered >= share * len(pods):
            break
        taken.append((dict(key), count))
        covered += count
    return [(amounts, count / covered) for amounts, count in taken]
