"""Writes the reference page of what can be extended: methods, decorators, questions over HTTP."""

from __future__ import annotations

import inspect
import re

from moorage import plugin
from moorage.framework.declaring import FORMS
from moorage.framework.registry import MAY_WAIT, METHODS, NEEDED_BESIDE
from moorage.service.questions.question import PREFIX
from tools.pages.questions_page import questions_over_http

_HEAD = """# Extension points

<!-- Written by `make docs` from the program. Do not edit. -->

A plugin is a class with any of these methods, or one decorated function. Everything named here
comes from `moorage.plugin`. How to load one: [tutorial](../tutorial/first-plugin.md),
[how-to](../how-to/write-a-plugin.md); what happens to one that misbehaves:
[when a plugin fails](../explanation/plugins.md).

## Decorated functions

`from moorage import plugin`, then `@plugin.filter`, or `@plugin.filter(name="...")`; without a
name, `prefer_green` is `PreferGreen`. The function stays a function.

| Decorator | Called as | May be `async` |
|---|---|---|
"""

_CLASSES = """
## Classes

The class attribute `name` is what the configuration calls the plugin; without one it is the name
of the class. The constructor is given what it names: `args`, `handle`, both or neither. With a
class attribute `args_type`, a `msgspec.Struct`, `args` is that struct, read strictly from
`pluginConfig`; without, it is what stands there.

"""

_ANSWERS = """
## What may be answered

- *Yes or no* (PreEnqueue, PreFilter, Filter for one node, PreScore, Reserve, Permit, PreBind,
  Bind): `True` and `None` are yes, `False` is no, a text is no and the reason, a `Status` is
  itself.
- *A score*: any finite number, rounded. Without `normalize` it has to be 0 to 100.
- *All nodes at once*: `filter` answers `None` (all pass), an array of bools (`True`: passes) or a
  `FilterAnswer`; `score` and `normalize` answer an array of numbers, one for each row of the view.
- Anything else fails the attempt, with the plugin's name in the message.

## What else a plugin can do

It declares [capabilities](capabilities.md): for example what its answers depend on, so that they
are reused for replicas, or that its PreBind may run next to others.

"""

_QUESTIONS = """## Questions over HTTP

A running scheduler answers questions on its secure port, in JSON. A program that only wants to
know needs no plugin. [Questions over HTTP](questions.md) has parameters and answers.
[The code map](../explanation/code-map.md) says where a new question goes.

| Question | Answers |
|---|---|
"""


def plugin_points_page() -> str:
    """Return the page."""
    return _HEAD + _decorators() + _CLASSES + _methods() + _ANSWERS + _questions() + _names()


def _decorators() -> str:
    rows = []
    for name, form in FORMS.items():
        wait = "yes" if form.may_wait else ""
        rows.append(f"| `@plugin.{name}` | `({', '.join(form.arguments)})` | {wait} |\n")
    return "".join(rows)


def _methods() -> str:
    sections = []
    for method, (point, declared) in METHODS.items():
        signature = str(inspect.signature(declared)).replace("moorage.framework.points.", "")
        doc = re.sub(r"\s+", " ", (inspect.getdoc(declared) or "").split("\n\n")[0])
        asynchronous = "May be `async def`. " if method in MAY_WAIT else ""
        beside = NEEDED_BESIDE.get(method)
        pair = f"Needs `{beside}` next to it. " if beside else ""
        where = "every point" if point == "events" else point
        text = f"{doc.replace('``', '`')} {asynchronous}{pair}".strip()
        sections.append(
            f"### {method}\n\n{where}. {text}\n\n```python\n{_wrapped(method, signature)}\n```\n"
        )
    return "\n".join(sections)


def _wrapped(method: str, signature: str) -> str:
    line = f"def {method}{signature.replace(chr(39), '')}"
    if len(line) <= 100:
        return line
    inside, _, answer = line.partition("(")[2].rpartition(") -> ")
    return f"def {method}(\n    {inside}\n) -> {answer}"


def _questions() -> str:
    without_body, with_body = questions_over_http()
    rows = [
        *(f"| `GET {PREFIX}{each.path}` | {each.summary} |\n" for each in without_body),
        *(f"| `POST {PREFIX}{each.path}` | {each.summary} |\n" for each in with_body),
    ]
    return _QUESTIONS + "".join(rows) + "\n"


def _names() -> str:
    lines = [f"`{name}`" for name in sorted(plugin.__all__)]
    return f"## All names of `moorage.plugin`\n\n{', '.join(lines)}\n"
