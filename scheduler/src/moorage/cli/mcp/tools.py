"""The tools: each is a command that only reads, with the options that a caller may give; pure.

The schema of a tool's input comes from the options of its command, so the two cannot differ.
Options that name a file, load code or choose who is asked are left out: whoever starts the server
decides about these, not the agent that calls it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click
import msgspec

from moorage.base.errors import UsageError

_TEXT_CHARS_MAX: Final = 4096
_MANIFEST_CHARS_MAX: Final = 1_000_000
_ITEMS_MAX: Final = 50
_JSON: Final = "json"
_MANIFESTS: Final = "manifests"
TARGET: Final = frozenset(
    {
        *("scheduler", "lease", "token", "certificate_authority", "insecure_skip_tls_verify"),
        *("kubeconfig", "context"),
    }
)
"""The options that say who is asked, and as whom."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool.

    Parameters
    ----------
    name
        Its name in the protocol.
    command
        The words of the command that answers.
    description
        What it answers, for whoever chooses a tool.
    options
        The options of the command that a caller may give, with underscores.
    argument, argument_text
        The name of the command's argument, and what it is; "" where there is none.
    argument_required
        Whether the argument must be given.
    manifests, manifests_text
        The option that reads manifests from standard input, and what they are; "" for none.
    """

    name: str
    command: tuple[str, ...]
    description: str
    options: tuple[str, ...] = ()
    argument: str = ""
    argument_text: str = ""
    argument_required: bool = True
    manifests: str = ""
    manifests_text: str = ""


class Invocation(msgspec.Struct, frozen=True):
    """The command line of a call, and its input.

    Parameters
    ----------
    arguments
        The arguments of the program.
    stdin
        Its standard input.
    json
        Whether it prints JSON.
    """

    arguments: tuple[str, ...]
    stdin: bytes = b""
    json: bool = False


TOOLS: Final = (
    Tool(
        name="queue",
        command=("queue",),
        description="Which pods wait for the scheduler, where and why. Pods of equal owner, group "
        "and reason are one row with their number. Begin here.",
        options=("namespace", "by", "sort", "limit"),
    ),
    Tool(
        name="explain_pod",
        command=("explain", "pod"),
        description="Where one pod is on its way, why it has no node, and which changes would help."
        " Every suggestion was tried.",
        options=("namespace", "node"),
        argument="name",
        argument_text="The name of the pod.",
    ),
    Tool(
        name="explain_object",
        command=("explain", "object"),
        description="Why pods of a workload, a group, a node, a claim or a namespace do not run, "
        "by cause, and which change helps most of them; also pods that were not created. Name an "
        "object, or select pods by label.",
        options=("namespace", "selector", "all_namespaces"),
        argument="object",
        argument_text="TYPE/NAME: deployment/api, job/train, podgroup/a, node/n1, pvc/data.",
        argument_required=False,
    ),
    Tool(
        name="what_if",
        command=("what-if",),
        description="What changes of the cluster would do: which pods start, move, are evicted, "
        "are lost, or wait, and why. Tried on a copy; nothing is written.",
        options=(
            *("namespace", "add", "remove", "cordon", "drain", "taint", "scale", "delete"),
            *("priority", "by", "limit"),
        ),
        manifests="apply",
        manifests_text="Objects to create, as YAML or JSON.",
    ),
    Tool(
        name="capacity",
        command=("capacity",),
        description="How many more pods fit, what binds first, and which nodes would place the "
        "pods that wait. Nothing is written.",
        options=("namespace", "like", "shape", "most", "by", "limit"),
        manifests="filename",
        manifests_text="A pod, or an owner of pods, as YAML or JSON: pods like it are counted.",
    ),
    Tool(
        name="reason",
        command=("reason",),
        description="What a code of a reason means, as the other tools name it, and how it is "
        "fixed; without a code: all codes.",
        argument="code",
        argument_text="The code, such as InsufficientCPU.",
        argument_required=False,
    ),
)
"""Every tool, by the order in which a list shows them."""


def input_schema(tool: Tool, root: click.Command) -> dict[str, Any]:
    """Return the JSON schema of a tool's input.

    Parameters
    ----------
    root
        The program's group of commands.
    """
    known = _options(tool, root)
    properties: dict[str, Any] = {}
    if tool.argument:
        properties[tool.argument] = _text(tool.argument_text)
    for name in tool.options:
        properties[name] = {"description": known[name].help or "", **_type(known[name])}
    if tool.manifests:
        properties[_MANIFESTS] = {
            "type": "string",
            "description": tool.manifests_text,
            "maxLength": _MANIFEST_CHARS_MAX,
        }
    properties[_JSON] = {"type": "boolean", "description": "Answer in JSON, with every field."}
    return {
        "type": "object",
        "properties": properties,
        "required": [tool.argument] if tool.argument and tool.argument_required else [],
        "additionalProperties": False,
    }


def invocation(
    tool: Tool, fields: Mapping[str, Any], root: click.Command, target: Sequence[str]
) -> Invocation:
    """Return the command line of a call, and its input.

    Parameters
    ----------
    fields
        The input of the call.
    root
        The program's group of commands.
    target
        Options that say who is asked, for the commands that ask.

    Raises
    ------
    UsageError
        The input does not match the schema; the message names the field.
    """
    schema = input_schema(tool, root)
    for name, value in fields.items():
        _check(tool, name, value, schema["properties"])
    for name in schema["required"]:
        if name not in fields:
            raise UsageError(f"{tool.name}: {name} is missing")
    known = _options(tool, root)
    words = [*tool.command]
    for name in tool.options:
        if name in fields:
            words += _words(known[name], fields[name])
    if known.keys() >= TARGET:
        words += target
    if fields.get(_JSON):
        words.append("--output=json")
    if _MANIFESTS in fields:
        words.append(f"{known[tool.manifests].opts[-1]}=-")
    if tool.argument in fields:
        words += ["--", fields[tool.argument]]
    return Invocation(
        tuple(words), fields.get(_MANIFESTS, "").encode(), json=bool(fields.get(_JSON))
    )


def _options(tool: Tool, root: click.Command) -> dict[str, click.Option]:
    """Return the options of a tool's command by name, with underscores."""
    command: click.Command | None = root
    for word in tool.command:
        assert isinstance(command, click.Group), "a word before the last is a group's"
        command = command.get_command(click.Context(command), word)
    assert command is not None, "the tools name commands of this package"
    options = (each for each in command.params if isinstance(each, click.Option))
    return {each.opts[-1].removeprefix("--").replace("-", "_"): each for each in options}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description, "maxLength": _TEXT_CHARS_MAX}


def _type(option: click.Option) -> dict[str, Any]:
    """Return the part of a schema for the values of an option."""
    if option.is_flag:
        return {"type": "boolean"}
    if isinstance(option.type, click.Choice):
        return {"type": "string", "enum": list(option.type.choices)}
    if isinstance(option.type, click.IntRange):
        bounds = {"minimum": option.type.min, "maximum": option.type.max}
        return {"type": "integer"} | {
            word: bound for word, bound in bounds.items() if bound is not None
        }
    if option.multiple:
        item = {"type": "string", "maxLength": _TEXT_CHARS_MAX}
        if option.metavar:
            item["description"] = option.metavar
        return {"type": "array", "items": item, "maxItems": _ITEMS_MAX}
    return {"type": "string", "maxLength": _TEXT_CHARS_MAX}


def _check(tool: Tool, name: str, value: Any, properties: Mapping[str, Any]) -> None:
    """Refuse a field that the schema does not have, or a value of another type.

    Choices and the bounds of numbers are the command's to check: its messages say more.
    """
    if name not in properties:
        raise UsageError(f"{tool.name}: there is no field {name}; known: {', '.join(properties)}")
    wanted = properties[name]
    if not _is_of(wanted, value):
        bound = wanted.get("maxItems") or wanted.get("maxLength")
        most = f" with at most {bound} {'texts' if 'items' in wanted else 'characters'}"
        raise UsageError(
            f"{tool.name}: {name} must be of type {wanted['type']}{most * bool(bound)}"
        )


def _is_of(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether a value has the type and the length of its schema."""
    match schema["type"]:
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "array":
            fits = isinstance(value, list) and len(value) <= schema["maxItems"]
            return fits and all(_is_of(schema["items"], each) for each in value)
        case _:
            most = schema.get("maxLength", _TEXT_CHARS_MAX)
            return isinstance(value, str) and len(value) <= most and "\0" not in value


def _words(option: click.Option, value: Any) -> list[str]:
    """Return the words of the command line that give a value to an option."""
    flag = option.opts[-1]
    if option.is_flag:
        return [flag] if value else []
    return [f"{flag}={each}" for each in (value if option.multiple else [value])]


def target_words(ctx: click.Context) -> list[str]:
    """Return the options of a command line that say who is asked, as words for another command."""
    words: list[str] = []
    for option in ctx.command.params:
        value = ctx.params.get(option.name or "")
        if isinstance(option, click.Option) and value:
            words += _words(option, value)
    return words
