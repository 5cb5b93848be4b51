"""Leader election on a Lease: of several replicas one schedules, the others watch and wait.

`scheduler` acquires before it starts to decide and ends when the lease is lost. Every write asks
`Elector.check_lease` right before it is sent (``client/guard``). So a process that was stopped, or
cut off from the server, for longer than its lease writes nothing when it comes back. A waiting
replica watches the lease (``lease_watch``): it takes a released lease at once, and an expired one
when it expires.

Notes
-----
Mirrors kubernetes v1.36 client-go tools/leaderelection/leaderelection.go: the holder of a lease is
judged by the local time at which its record was last seen to change, never by the times in it.
Stricter here: *our* right to write counts from before the renewing call was sent, because another
replica may have seen its effect any time after that. Both clocks must agree, because the monotonic
clock stands still while a machine is suspended.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar

import msgspec

from moorage.api.resources import CORE_EVENTS, LEASES
from moorage.api.schedules.durations import parse_duration
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import NS_PER_SECOND, Clock, rfc3339, rfc3339_micro
from moorage.base.errors import (
    ConflictError,
    LeaseLostError,
    MoorageError,
    NotFoundError,
    NotLeadingError,
)
from moorage.base.rng import Random, Streams
from moorage.base.verbosity import V0, V1
from moorage.client.transport import Transport
from moorage.client.writes import Client, JsonObject
from moorage.config.types import KubeSchedulerConfiguration, LeaderElection
from moorage.service.process.lease_watch import LeaseWatch

_log = logging.getLogger(__name__)

T = TypeVar("T")

_JITTER: Final = 1.2
# An ending process must not hang on a silent server: a sandbox ends within two seconds. A lease
# that is not released ends by itself.
_RELEASE_SECONDS_MAX: Final = 1.0


class LeaseRule(msgspec.Struct, frozen=True, kw_only=True):
    """The lease and its times.

    Parameters
    ----------
    namespace, name
        Of the Lease object.
    lease_ns
        Time for which other replicas respect a lease that is not renewed, nanoseconds.
    renew_ns
        Time for which the holder tries to renew before it gives up, nanoseconds.
    retry_ns
        Between two tries, nanoseconds.
    """

    namespace: str
    name: str
    lease_ns: int
    renew_ns: int
    retry_ns: int

    @property
    def lease_seconds(self) -> int:
        """The duration in the record, which other replicas respect: whole seconds, cut off."""
        return self.lease_ns // NS_PER_SECOND

    @property
    def writing_ns(self) -> int:
        """Return the time after a renewal in which writes are sent, at most the lease; ns."""
        return min(self.lease_seconds * NS_PER_SECOND, self.renew_ns + self.retry_ns)

    @property
    def call_seconds(self) -> float:
        """Longest wait for one answer about the lease."""
        return max(1.0, self.renew_ns / NS_PER_SECOND / 2)


def lease_rule(config: LeaderElection) -> LeaseRule:
    """Return the rule of a configuration that has been checked."""
    return LeaseRule(
        namespace=config.resource_namespace,
        name=config.resource_name,
        lease_ns=parse_duration(config.lease_duration),
        renew_ns=parse_duration(config.renew_deadline),
        retry_ns=parse_duration(config.retry_period),
    )


class Elector:
    """Acquires, keeps and releases the lease.

    Parameters
    ----------
    client
        Verbs over a transport that is not guarded by this elector.
    rule
        The lease and its times.
    identity
        The name of this process; no other process may use the same.
    component
        The reporter of the Events: the first profile's scheduler name.
    clock, rng
        Time, and the stream for the jitter of waiting.
    on_leading
        Called with True when leading begins and with False when it ends.
    annotations
        Returns what the lease is annotated with whenever it is written.
    """

    def __init__(
        self,
        client: Client,
        rule: LeaseRule,
        *,
        identity: str,
        component: str,
        clock: Clock,
        rng: Random,
        on_leading: Callable[[bool], None] = lambda leading: None,
        annotations: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._client = client
        self._rule = rule
        self._identity = identity
        self._component = component
        self._clock = clock
        self._rng = rng
        self._on_leading = on_leading
        self._annotations = annotations
        self._object: JsonObject = {}
        """The lease as last seen or written; empty while there is none."""
        self._changed_ns = 0
        """Monotonic time at which the lease's record was last seen to change."""
        self._write_until_ns: tuple[int, int] | None = None
        """Monotonic and wall time up to which writes may go out; None: not leading."""
        self._write_sent = False
        """Whether a write of ours was sent, so that the server may have given us the lease."""
        self._last_warning = ""
        self._freed = asyncio.Event()
        """Set when the watch shows that nobody holds the lease."""
        self.tried = asyncio.Event()
        """Set when the lease was asked for once: `holder` is known, unless the call failed."""
        self.slow_paths = 0
        """Renewals that had to read the lease's holder first."""

    @property
    def identity(self) -> str:
        """The name of this process."""
        return self._identity

    @property
    def lease_name(self) -> str:
        """Name of the Lease."""
        return self._rule.name

    @property
    def lease(self) -> str:
        """``namespace/name`` of the Lease."""
        return f"{self._rule.namespace}/{self._rule.name}"

    @property
    def holder(self) -> str:
        """The identity last seen to hold the lease, "" for none."""
        return str(_spec(self._object).get("holderIdentity") or "")

    @property
    def leading(self) -> bool:
        """Whether a write may go out now."""
        until = self._write_until_ns
        return (
            until is not None
            and self._clock.monotonic_ns() < until[0]
            and self._clock.now_ns() < until[1]
        )

    def check_lease(self) -> None:
        """Pass if a write may go out now.

        Raises
        ------
        NotLeadingError
            Another process may hold the lease by now.
        """
        if not self.leading:
            raise NotLeadingError(
                f"not sent: {self._identity} does not hold lease "
                f"{self._rule.namespace}/{self._rule.name}"
            )

    async def acquire(self) -> bool:
        """Wait until we hold the lease; return whether it was not free at first."""
        rule, watching = self._rule, TaskOwner()
        _log.info("attempting to acquire leader lease %s/%s", rule.namespace, rule.name)
        try:
            while not await self._try_lease(rule.call_seconds):
                if not watching:
                    watching.spawn(self._watch().run(), name="lease watch")
                self.tried.set()
                if self.holder not in ("", self._identity):
                    self._log_once(
                        f"waiting: lease {rule.namespace}/{rule.name} is held by {self.holder}. To "
                        "schedule beside it, set leaderElection.resourceName to a name of its own"
                    )
                await self._until_next_try()
        finally:
            await watching.cancel_all()
        # A replica that leads at the start says so in its first line; after waiting, here.
        waited = self.tried.is_set()
        _log.log(V0 if waited else V1, "successfully acquired lease %s", self.lease)
        self.tried.set()
        self._on_leading(True)
        return waited

    async def keep(self) -> None:
        """Renew the lease until renewing fails for too long.

        Raises
        ------
        LeaseLostError
            The lease could not be renewed in time; another replica may lead.
        """
        try:
            while True:
                await aio.sleep(self._rule.retry_ns / NS_PER_SECOND)
                await self._renew()
        except LeaseLostError:
            self._write_until_ns = None
            self._on_leading(False)
            raise

    async def release(self) -> None:
        """Give the lease up, if we hold it, so that another replica need not wait for its end.

        We may hold it without knowing, where the answer to our write has not come. A lease that
        is not there is held by nobody: our write was cut off, or the lease was deleted.
        """
        if not self._write_sent:
            return
        # From here on nothing may be written in the lease's name.
        if self._write_until_ns is not None:
            self._write_until_ns = None
            self._on_leading(False)
        try:
            async with asyncio.timeout(min(self._rule.call_seconds, _RELEASE_SECONDS_MAX)):
                await self._give_up()
        except NotFoundError:
            _log.info("lease %s does not exist: there is nothing to release", self.lease)
        except (MoorageError, TimeoutError) as problem:
            _log.warning("failed to release the lease: %s", _why(problem))

    async def tell(self, what: str) -> None:
        """Write an Event about the lease (``became leader``); failing is only logged.

        Notes
        -----
        kubernetes v1.36 client-go tools/leaderelection/resourcelock/leaselock.go.
        """
        now_ns = self._clock.now_ns()
        try:
            await self._client.create(
                CORE_EVENTS, self._event(what, now_ns), namespace=self._rule.namespace
            )
        except MoorageError as problem:
            _log.info("event about the lease was not written: %s", problem)

    def _watch(self) -> LeaseWatch:
        rule = self._rule
        return LeaseWatch(
            self._client,
            rule.namespace,
            rule.name,
            clock=self._clock,
            rng=self._rng,
            on_change=self._observe_lease,
        )

    def _observe_lease(self, lease: JsonObject) -> None:
        """Take in a version of the lease from the watch, while we wait for it."""
        if self._write_until_ns is not None:
            return
        self._see(lease)
        if not self.holder:
            self._freed.set()

    def _see(self, lease: JsonObject) -> None:
        if _spec(lease) != _spec(self._object):
            self._changed_ns = self._clock.monotonic_ns()
        self._object = lease

    async def _until_next_try(self) -> None:
        """Wait for a retry period, and no longer than until the lease is free or over."""
        wait_ns = int(self._rule.retry_ns * (1 + _JITTER * self._rng.random()))
        left_ns = self._over_ns() - self._clock.monotonic_ns()
        if self.holder and left_ns > 0:
            wait_ns = min(wait_ns, left_ns)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_ns / NS_PER_SECOND):
                await self._freed.wait()
        self._freed.clear()

    async def _renew(self) -> None:
        """Try until the lease is renewed, or until it is too late."""
        end_ns = self._clock.monotonic_ns() + self._rule.renew_ns
        while True:
            left_ns = end_ns - self._clock.monotonic_ns()
            seconds = min(self._rule.call_seconds, left_ns / NS_PER_SECOND)
            if left_ns > 0 and await self._try_lease(seconds):
                return
            left_ns = end_ns - self._clock.monotonic_ns()
            if left_ns <= 0:
                raise LeaseLostError(
                    f"leader election lost: lease {self._rule.namespace}/{self._rule.name} "
                    f"is held by {self.holder or 'nobody'}, and was not renewed in time"
                )
            await aio.sleep(min(self._rule.retry_ns, left_ns) / NS_PER_SECOND)

    async def _try_lease(self, call_seconds: float) -> bool:
        """Acquire or renew once; True if we hold the lease now."""
        try:
            return await self._acquire_or_renew(call_seconds)
        except (MoorageError, TimeoutError) as problem:
            text = f"lease {self._rule.namespace}/{self._rule.name}: {_why(problem)}"
            if isinstance(problem, ConflictError) and self._write_until_ns is None:
                _log.info("%s; another replica was faster", text)
            else:
                self._log_once(text)
            return False

    async def _acquire_or_renew(self, call_seconds: float) -> bool:
        if self.holder == self._identity and not self._expired():
            try:
                return await self._write_lease(call_seconds)
            except (MoorageError, TimeoutError) as problem:
                # Another replica wrote the lease, or our last write lost its answer: look.
                _log.info("lease was not renewed at once: %s", _why(problem))
        try:
            lease = await self._in_time(
                self._client.get(LEASES, self._rule.name, namespace=self._rule.namespace),
                call_seconds,
            )
        except NotFoundError:
            self._object = {}
            return await self._write_lease(call_seconds)
        self._see(lease)
        if self.holder not in ("", self._identity):
            self._write_until_ns = None
            if not self._expired():
                return False
        if self.holder == self._identity:
            self.slow_paths += 1
        return await self._write_lease(call_seconds)

    def _expired(self) -> bool:
        return self._over_ns() <= self._clock.monotonic_ns()

    def _over_ns(self) -> int:
        """Return the monotonic time at which the lease is over unless it changes, ns."""
        duration = _number(_spec(self._object).get("leaseDurationSeconds"))
        return self._changed_ns + duration * NS_PER_SECOND

    async def _write_lease(self, call_seconds: float) -> bool:
        """Create the lease, or replace it at the version last seen; return True or raise."""
        rule, old = self._rule, _spec(self._object)
        sent_ns, wall_ns = self._clock.monotonic_ns(), self._clock.now_ns()
        now = rfc3339_micro(wall_ns)
        spec: JsonObject = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": rule.lease_seconds,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": 0,
        }
        if self._object:
            spec["leaseTransitions"] = _number(old.get("leaseTransitions"))
            if self.holder == self._identity:
                spec["acquireTime"] = old.get("acquireTime") or now
            else:
                spec["leaseTransitions"] = _number(old.get("leaseTransitions")) + 1
        self._write_sent = True
        self._object = await self._in_time(self._replace_lease(spec), call_seconds)
        self._changed_ns = self._clock.monotonic_ns()
        self._write_until_ns = (sent_ns + rule.writing_ns, wall_ns + rule.writing_ns)
        self._last_warning = ""
        return True

    def _replace_lease(self, spec: JsonObject) -> Coroutine[Any, Any, JsonObject]:
        rule, annotations = self._rule, self._annotations()
        if self._object:
            meta: Any = self._object["metadata"]
            if annotations:
                meta = {**meta, "annotations": {**(meta.get("annotations") or {}), **annotations}}
            changed = {**self._object, "metadata": meta, "spec": spec}
            return self._client.replace(LEASES, changed, name=rule.name, namespace=rule.namespace)
        lease: JsonObject = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {
                "name": rule.name,
                "namespace": rule.namespace,
                **({"annotations": dict(annotations)} if annotations else {}),
            },
            "spec": spec,
        }
        return self._client.create(LEASES, lease, namespace=rule.namespace)

    async def _give_up(self) -> None:
        rule = self._rule
        lease = await self._client.get(LEASES, rule.name, namespace=rule.namespace)
        self._object = lease
        if self.holder != self._identity:
            return
        now = rfc3339_micro(self._clock.now_ns())
        spec: JsonObject = {
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": _number(_spec(lease).get("leaseTransitions")),
        }
        self._object = await self._replace_lease(spec)
        await self.tell("stopped leading")

    async def _in_time(self, call: Coroutine[Any, Any, T], seconds: float) -> T:
        async with asyncio.timeout(seconds):
            return await call

    def _log_once(self, text: str) -> None:
        """Log a message for people, once for each condition that lasts."""
        level = logging.DEBUG if text == self._last_warning else logging.WARNING
        self._last_warning = text
        _log.log(level, "%s", text)

    def _event(self, what: str, now_ns: int) -> JsonObject:
        found = self._object.get("metadata")
        metadata = found if isinstance(found, dict) else {}
        now = rfc3339(now_ns)
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{self._rule.name}.{now_ns:x}",
                "namespace": self._rule.namespace,
            },
            "involvedObject": {
                "apiVersion": LEASES.api_version,
                "kind": LEASES.kind,
                "namespace": self._rule.namespace,
                "name": self._rule.name,
                "uid": metadata.get("uid", ""),
                "resourceVersion": metadata.get("resourceVersion", ""),
            },
            "reason": "LeaderElection",
            "message": f"{self._identity} {what}",
            "source": {"component": self._component},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": "Normal",
            "reportingComponent": self._component,
            "reportingInstance": "",
        }


def elector_of(
    config: KubeSchedulerConfiguration,
    transport: Transport,
    *,
    identity: str,
    clock: Clock,
    streams: Streams,
    annotations: Callable[[], Mapping[str, str]] = dict,
) -> Elector | None:
    """Return the elector of a scheduler; None where no election is configured.

    Parameters
    ----------
    config
        Names the lease and its times.
    transport
        Carries the calls about the lease. Nothing may delay or refuse them.
    identity
        The name of this process; no other process may use the same.
    annotations
        Returns what the lease is annotated with whenever it is written.
    clock, streams
        Time and randomness.
    """
    if not config.leader_election.leader_elect:
        return None
    rng = streams.stream("lease")
    return Elector(
        Client(transport, rng=rng),
        lease_rule(config.leader_election),
        identity=identity,
        component=config.profiles[0].scheduler_name,
        clock=clock,
        rng=rng,
        annotations=annotations,
    )


def _why(problem: Exception) -> str:
    return str(problem) or "no answer in time"


def _spec(lease: JsonObject) -> JsonObject:
    spec = lease.get("spec")
    return spec if isinstance(spec, dict) else {}


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
