"""A scheduler over one transport, which carries the calls about its lease as well."""

from __future__ import annotations

from moorage.base.clock import Clock
from moorage.base.rng import Streams
from moorage.client.transport import Transport
from moorage.config.own import LoadedConfiguration
from moorage.framework.registry import Registry
from moorage.observe.records.recorder import Recorder
from moorage.observe.traces.attempts import Traces
from moorage.service.assembly import assemble
from moorage.service.attempts.extenders import Connect
from moorage.service.process.facts import Facts
from moorage.service.process.leader import elector_of
from moorage.service.scheduler import Scheduler


def scheduler_over(  # noqa: PLR0913 - one keyword for each part it is given
    transport: Transport,
    config: LoadedConfiguration,
    registry: Registry,
    *,
    clock: Clock,
    streams: Streams,
    host: str,
    facts: Facts | None = None,
    traces: Traces | None = None,
    connect: Connect | None = None,
) -> Scheduler:
    """Return a scheduler, ready to run; its host name is its name in leader election.

    Parameters
    ----------
    transport
        Carries all its calls.
    config, registry
        The scheduler's configuration, and the known plugins.
    clock, streams
        Time and randomness.
    host
        Name of the scheduler's host. Two schedulers on one server need two names.
    facts
        Its running totals; new ones when not given.
    traces
        Makes spans from its attempts; None where nothing is traced.
    connect
        Opens the connection to each extender; over HTTP when not given.
    """
    elector = elector_of(config.scheduler, transport, identity=host, clock=clock, streams=streams)
    return assemble(
        config,
        registry,
        transport,
        clock=clock,
        streams=streams,
        host=host,
        elector=elector,
        facts=facts,
        recorder=Recorder(clock, traces=traces),
        connect=connect,
    )
