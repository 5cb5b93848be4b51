"""Checks whether a function takes the arguments it will be given.

Asked when a plugin from outside is registered, so that a swapped or missing argument is an error at
start-up instead of a failing attempt.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def parameter_faults(
    function: Callable[..., Any], wanted: Sequence[inspect.Parameter], *, skip_first: bool = False
) -> Iterator[str]:
    """Yield each argument of the call that a function does not accept.

    Parameters
    ----------
    function
        The function.
    wanted
        The arguments of the call: by position, or by name where keyword-only.
    skip_first
        Whether the first parameter is ``self``.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some builtins have no signature: calling will tell
        return
    if skip_first:
        parameters = parameters[1:]
    kinds = {parameter.kind for parameter in parameters}
    places = [p for p in parameters if p.kind in _POSITIONAL]
    by_place = [p.name for p in wanted if p.kind in _POSITIONAL]
    by_name = [p.name for p in wanted if p.kind is inspect.Parameter.KEYWORD_ONLY]
    for index, name in enumerate(by_place):
        if index < len(places):
            found = places[index].name
            if found != name and found in by_place:
                yield f"takes `{found}` where it is given `{name}`"
                return  # a misplaced argument makes another one wrong, too
        elif inspect.Parameter.VAR_POSITIONAL not in kinds:
            yield f"takes no `{name}`"
    names = {p.name for p in parameters}
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        yield from (f"takes no `{name}`" for name in by_name if name not in names)
    needed = [
        *places[len(by_place) :],
        *(p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY),
    ]
    for parameter in needed:
        if parameter.default is parameter.empty and parameter.name not in by_name:
            yield f"asks for `{parameter.name}`, which it is not given"
