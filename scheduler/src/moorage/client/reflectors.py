"""Makes the reflectors of one program: they share its transport, its clock and its streams."""

from __future__ import annotations

from collections.abc import Callable

from moorage.api.resources import ResourceType
from moorage.base.aio import Hold
from moorage.base.clock import Clock
from moorage.base.rng import Streams
from moorage.client.handler import Handler
from moorage.client.reflector import ObjectT, Reflector
from moorage.client.transport import Transport
from moorage.client.whole import WholeObjects


class Reflectors:
    """Makes reflectors, each with a stream of its own.

    Parameters
    ----------
    transport
        Carries the calls of all reflectors.
    clock, streams
        Time, and randomness.
    prefix
        The name of a reflector's stream begins with it.
    hold
        Keeps changes from all handlers for a while; None where nobody does.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Clock,
        streams: Streams,
        prefix: str = "reflector",
        hold: Hold | None = None,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._streams = streams
        self._prefix = prefix
        self._hold = hold

    def reflector_of(
        self,
        resource: ResourceType,
        type_: type[ObjectT],
        handler: Handler[ObjectT],
        *,
        fields: str = "",
        whole: WholeObjects | None = None,
        trim: Callable[[ObjectT], None] | None = None,
        optional: bool = False,
    ) -> Reflector[ObjectT]:
        """Return a new reflector of a resource type; the other parameters are as `Reflector`'s.

        Parameters
        ----------
        fields
            The field selector of list and watch.
        """
        return Reflector(
            self._transport,
            resource,
            type_,
            handler=handler,
            clock=self._clock,
            rng=self._streams.stream(f"{self._prefix}/{resource.plural}"),
            field_selector=fields,
            whole=whole,
            trim=trim,
            optional=optional,
            hold=self._hold,
        )
