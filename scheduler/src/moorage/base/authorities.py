"""Certificate authorities that a client trusts; those of the machine are read when needed.

aiohttp makes two TLS contexts when it is imported, each with every authority the machine trusts:
a third of the time its import takes. Calls to a server we know bring a context of their own, so
most processes never use these two.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# The functions by which asyncio and uvloop connect, and the one that `http.client` uses.
_WRAPPERS = ("wrap_bio", "wrap_socket")


@contextmanager
def read_when_used() -> Iterator[None]:
    """Make new contexts read the machine's authorities only at their first connection."""

    def later(context: ssl.SSLContext, *_purpose: object) -> None:
        for wrapper in _WRAPPERS:
            setattr(context, wrapper, _first(context, wrapper))

    contexts: Any = ssl.SSLContext
    loaded = contexts.load_default_certs
    # The second stands in for a method of C that the class inherits, so it is deleted again.
    contexts.load_default_certs = contexts.set_default_verify_paths = later
    try:
        yield
    finally:
        contexts.load_default_certs = loaded
        del contexts.set_default_verify_paths


def client_context(authorities: str | None) -> ssl.SSLContext:
    """Return the TLS context of a client that trusts these authorities as Go's clients do.

    Each given certificate is trusted, root or not. So is an authority without key identifiers
    (openssl's, older clouds'). Python 3.13 added the first rule and forbade the second.

    Parameters
    ----------
    authorities
        PEM; None for the machine's.

    Raises
    ------
    ssl.SSLError
        The text has no PEM certificate.
    """
    context = ssl.create_default_context(cadata=authorities)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _first(context: ssl.SSLContext, wrapper: str) -> Callable[..., Any]:
    """Return a method that loads the authorities and then calls the method of that name."""

    def call(*args: Any, **options: Any) -> Any:
        for each in _WRAPPERS:
            vars(context).pop(each, None)
        context.load_default_certs()
        return getattr(context, wrapper)(*args, **options)

    return call
