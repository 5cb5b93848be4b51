"""Writing a snapshot: every object once, in order of its key, in groups that can be read alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moorage_sandbox.storage.journal.files import Files
from moorage_sandbox.storage.journal.groups import FORMAT, Chain, Entry, GroupKind, Opening
from moorage_sandbox.storage.journal.mark import snapshot_name

# Bytes of a group. All of them are lost if the group cannot be read; each group costs time. A
# guess.
_GROUP_BYTES = 65_536


def write_snapshot(
    files: Files, generation: int, after: Chain, entries: Iterable[Entry], *, at: tuple[int, int]
) -> int:
    """Write a snapshot durably; the file gets its name only when it is whole.

    Parameters
    ----------
    files
        Where.
    generation
        Number of the snapshot.
    after
        The last group of the log that the snapshot contains.
    entries
        Every object, sorted by key.
    at
        The newest resourceVersion in the snapshot, and the cluster's time.

    Returns
    -------
    int
        Size of the snapshot, bytes.

    Raises
    ------
    OSError
        The snapshot could not be written; nothing else has changed.
    """
    name, (version, moment_ns) = snapshot_name(generation), at
    draft = f"{name}.new"
    file = files.open(draft, new=True)
    size = 0
    try:
        chain = Chain()
        for kind, content in _contents(
            Opening(FORMAT, name, after.sequence, after.digest), entries
        ):
            data, chain = chain.next_group(kind, content, version=version, moment_ns=moment_ns)
            file.write(data)
            size += len(data)
        file.sync()
    except BaseException:
        file.close()
        files.remove(draft)
        raise
    file.close()
    files.rename(draft, name)
    files.sync_names()
    return size


def _contents(
    opening: Opening, entries: Iterable[Entry]
) -> Iterator[tuple[GroupKind, Opening | list[Entry] | int]]:
    yield GroupKind.OPENING, opening
    lot: list[Entry] = []
    lot_bytes = count = 0
    for entry in entries:
        lot.append(entry)
        lot_bytes += len(entry.data or b"")
        count += 1
        if lot_bytes >= _GROUP_BYTES:
            yield GroupKind.WRITES, lot
            lot, lot_bytes = [], 0
    if lot:
        yield GroupKind.WRITES, lot
    yield GroupKind.END, count


def merged(
    snapshot: Iterable[Entry], changes: dict[tuple[str, str, str], Entry]
) -> Iterator[Entry]:
    """Yield the objects of a snapshot as later writes left them, sorted by key.

    Parameters
    ----------
    snapshot
        Sorted by key.
    changes
        Key -> the last write of the object since.
    """
    pending = iter(sorted(changes.items()))
    key, change = next(pending, (None, None))
    for entry in snapshot:
        while key is not None and change is not None and key < entry.key:
            if change.data is not None:
                yield change
            key, change = next(pending, (None, None))
        if key == entry.key:
            if change is not None and change.data is not None:
                yield change
            key, change = next(pending, (None, None))
        else:
            yield entry
    while change is not None:
        if change.data is not None:
            yield change
        _, change = next(pending, (None, None))
