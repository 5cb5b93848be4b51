"""``moorage apply``: make the cluster look like manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moorage.cli.options import kubeconfig_option, namespace_option, output_option

if TYPE_CHECKING:
    from moorage.cli.manifests import Manifest
    from moorage.cli.render import Form
    from moorage.cli.session import Session
    from moorage.client.transport import Call

_EPILOG = """
\b
Examples:
  moorage apply -f examples/first.yaml
  moorage apply -f manifests/ -R
  generate-pods | moorage apply -f -

Objects that are not there are created. Of those that are, the fields that differ are changed,
fields that were applied before and have left the manifest are removed, and what others have set
stays. kubectl's annotation is used, so both can take turns.
"""


@click.command(epilog=_EPILOG)
@click.option(
    "-f",
    "--filename",
    "sources",
    multiple=True,
    required=True,
    metavar="FILE",
    help="Manifest, directory of manifests, or - for standard input; may repeat.",
)
@click.option("-R", "--recursive", is_flag=True, help="Go into the directories of a directory.")
@output_option("name")
@namespace_option
@kubeconfig_option
def apply(
    *,
    sources: tuple[str, ...],
    recursive: bool,
    output: Form,
    namespace: str,
    kubeconfig: str,
    context: str,
) -> None:
    """Create the objects of manifests, or change them to match the manifests."""
    from moorage.base.errors import MoorageError
    from moorage.cli.manifests import read_manifests
    from moorage.cli.render import show, show_error
    from moorage.cli.session import run_session

    manifests = read_manifests(sources, recursive=recursive)

    async def work(session: Session) -> tuple[list[Manifest], int]:
        stored: list[Manifest] = []
        refused = 0
        for manifest in manifests:
            try:
                name, done, obj = await _apply_one(session, manifest, fixed=namespace)
            except MoorageError as error:
                refused += 1
                show_error(_naming(manifest, str(error)))
                continue
            stored.append(obj)
            if output in {"text", "name"}:
                click.echo(name if output == "name" else f"{name} {done}")
        return stored, refused

    stored, refused = run_session(
        work, kubeconfig=kubeconfig, context=context, namespace=namespace, waits=True, writes=True
    )
    if output in {"json", "yaml"}:
        show(output, {"apiVersion": "v1", "kind": "List", "items": stored}, text="")
    if refused:
        raise MoorageError(f"{refused} of {len(manifests)} objects were refused")


async def _apply_one(
    session: Session, manifest: Manifest, *, fixed: str
) -> tuple[str, str, Manifest]:
    """Apply one object; return ``kind/name``, the action taken, and the object as stored."""
    from moorage.api.codec import encode
    from moorage.base.errors import NotFoundError, UsageError
    from moorage.cli.kinds import manifest_kind
    from moorage.client import requests
    from moorage_sandbox.cli.apply.patch import last_applied, three_way_patch, with_last_applied

    client = session.client
    resource = await manifest_kind(client, manifest)
    metadata = manifest["metadata"]
    name = metadata.get("name")
    if not name:
        raise UsageError(f"a {resource.kind} without metadata.name cannot be applied; give it one")
    wanted = manifest
    namespace = ""
    if resource.namespaced:
        own = metadata.get("namespace") or ""
        if fixed and own and own != fixed:
            raise UsageError(
                f"{resource.kind} {name} is of namespace {own}, not {fixed}: leave out -n"
            )
        namespace = own or session.namespace
        wanted = {**manifest, "metadata": {**metadata, "namespace": namespace}}
    wanted = with_last_applied(wanted)
    shown = f"{resource.singular}{f'.{resource.group}' if resource.group else ''}/{name}"
    try:
        live = await client.get(resource, name, namespace=namespace)
    except NotFoundError:
        # As kubectl: an object that was exported names the version that it had.
        metadata = {
            key: each for key, each in wanted["metadata"].items() if key != "resourceVersion"
        }
        new = {**wanted, "metadata": metadata}
        call = requests.create(resource, encode(new), namespace=namespace)
        return shown, "created", await _write(session, call)
    patch = three_way_patch(last_applied(live), wanted, live)
    if not patch:
        return shown, "unchanged", live
    body = requests.patch_body(patch)
    call = requests.patch(
        resource, name, body, namespace=namespace, content_type=requests.MERGE_PATCH
    )
    stored = await _write(session, call)
    same = _version(stored) == _version(live)
    return shown, "unchanged" if same else "configured", stored


async def _write(session: Session, call: Call) -> Manifest:
    """Send a write that makes the server refuse unknown fields, as kubectl does."""
    import msgspec

    from moorage.client.status import error_from_answer

    query = (*call.query, ("fieldValidation", "Strict"))
    answer = await session.transport.request(msgspec.structs.replace(call, query=query))
    if answer.status >= 400:
        raise error_from_answer(answer)
    stored: Manifest = msgspec.json.decode(answer.body)
    return stored


def _naming(manifest: Manifest, text: str) -> str:
    """Prefix a message with the object unless the message names the object."""
    kind, name = manifest["kind"], manifest["metadata"].get("name", "")
    named = not name or f'"{name}"' in text or text.startswith(f"{kind} {name}")
    return text if named else f"{kind} {name}: {text}"


def _version(obj: Manifest) -> str:
    return str(obj["metadata"].get("resourceVersion", ""))
