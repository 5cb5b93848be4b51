"""Named, seeded random streams.

Every draw comes from a stream with a name of its own. So an additional draw from one stream does
not shift the draws of another. A failing seed replays exactly.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

Random = random.Random


def from_random(numbers: range, rng: Random) -> Iterator[int]:
    """Yield every number of a range that is not empty, in order from a drawn one on, and around."""
    start = rng.randrange(len(numbers))
    for step in range(len(numbers)):
        yield numbers[(start + step) % len(numbers)]


class Streams:
    """A family of independent random streams under one seed.

    Parameters
    ----------
    seed
        Any integer; None draws a seed from the operating system. The attribute `seed` has the value
        in both cases, so a run can always be repeated.
    """

    def __init__(self, seed: int | None = None) -> None:
        self.seed = secrets.randbits(63) if seed is None else seed
        self._streams: dict[str, Random] = {}

    def stream(self, name: str) -> Random:
        """Return the stream of this name, made on first use from the seed and the name."""
        random_stream = self._streams.get(name)
        if random_stream is None:
            # A string seed is hashed with SHA-512 by the standard library: stable across runs
            # and Python versions, unlike hash().
            random_stream = self._streams[name] = random.Random(f"{self.seed}/{name}")
        return random_stream

    @contextmanager
    def undrawn(self) -> Iterator[None]:
        """Undo every draw made within the context, for questions that must change no decision."""
        before = {name: stream.getstate() for name, stream in self._streams.items()}
        try:
            yield
        finally:
            for name in [name for name in self._streams if name not in before]:
                del self._streams[name]
            for name, state in before.items():
                self._streams[name].setstate(state)

    def copy(self) -> Streams:
        """Return streams that will draw what these streams would draw."""
        other = Streams(self.seed)
        other.rewind(self)
        return other

    def rewind(self, to: Streams) -> None:
        """Let every stream draw what the stream of the same name of `to` would draw."""
        for name in {**self._streams, **to._streams}:
            known = to._streams.get(name) or random.Random(f"{to.seed}/{name}")
            self.stream(name).setstate(known.getstate())
