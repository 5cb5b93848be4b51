"""Reads the configuration and the plugin files again: on SIGHUP, and when one of them changes.

`moorage.service.process.reload` decides whether the result can be taken over, and does so.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from moorage.base.aio import sleep
from moorage.base.errors import ConfigError, UsageError
from moorage.cli.render import show_note
from moorage.config.own import LoadedConfiguration
from moorage.framework.registry import Registry
from moorage.service.process.reload import Reload

_log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
"""Time between two looks at the files. Looking costs a few microseconds and needs no facility of
the operating system; it also sees the links of a mounted ConfigMap change."""

Signature = tuple[int, int, int] | None
"""(modification time in ns, size in bytes, inode) of a file; None for a file that is not there."""


class Read(NamedTuple):
    """A configuration as it was read, and with its plugins from outside."""

    file_config: LoadedConfiguration
    config: LoadedConfiguration
    registry: Registry


class WatchedFiles:
    """Files that are looked at for changes since they were read.

    Parameters
    ----------
    files
        The files. A signature is taken of each at once, so this is made before they are read.

    Attributes
    ----------
    loaded
        The signatures of the files as they were read last.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = tuple(files)
        self.loaded = self.now()

    def now(self) -> list[Signature]:
        """Return the signatures of the files."""
        return [_signature(path) for path in self._files]

    def faults(self) -> list[str]:
        """Return a fault for each file that could keep the reader waiting: a pipe, a device."""
        return [
            f"{path}: it is no regular file"
            for path in self._files
            if path.exists() and not path.is_file()
        ]

    def read_again(self) -> None:
        """Note that the files are about to be read."""
        self.loaded = self.now()


class Reloading:
    """Reloads a running scheduler.

    Parameters
    ----------
    reload
        Takes configurations over.
    read
        Reads the configuration and imports the plugins, both anew.
    files
        The files that are watched, made before the configuration in force was read.
    in_force
        Called with the configuration as it was read, before it is put in force.
    """

    def __init__(
        self,
        reload: Reload,
        read: Callable[[], Read],
        files: WatchedFiles,
        in_force: Callable[[LoadedConfiguration], None],
    ) -> None:
        self._in_force = in_force
        self._reload = reload
        self._read = read
        self._files = files

    def listen(self) -> None:
        """Reload at each SIGHUP."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.reload)

    async def run(self) -> None:
        """Reload when the files have changed and then stayed the same for a second."""
        files = self._files
        last = files.loaded
        while True:
            await sleep(LOOK_SECONDS)
            found = files.now()
            # An editor may write in several steps, so the next look has to find the same.
            if found != files.loaded and found == last:
                self.reload()
            last = found

    def reload(self) -> None:
        """Read everything anew, and have it taken over or refused."""
        self._files.read_again()
        if faults := self._files.faults():
            self._refuse(faults)
            return
        try:
            read = self._read()
            prepared = self._reload.prepare(read.config, read.registry)
        except UsageError as error:
            self._refuse(_faults(error))
        except Exception as problem:  # a plugin of the new version, at its import or construction
            _log.exception("reload broke")
            self._refuse([f"{type(problem).__name__}: {problem}"])
        else:
            self._in_force(read.file_config)
            self._reload.put_in_force(prepared, read.registry)

    def _refuse(self, faults: Sequence[str]) -> None:
        self._reload.refused(faults)
        for fault in faults:
            show_note(f"reload refused, the configuration in force stays: {fault}")


def _faults(error: UsageError) -> Sequence[str]:
    """Return each fault, with the file that it is in."""
    if not isinstance(error, ConfigError):
        return (str(error),)
    where = f"{error.source}: " if error.source else ""
    return [f"{where}{fault}" for fault in error.faults]


def watched_files(config: Path | None, plugins: Sequence[str]) -> WatchedFiles:
    """Return the configuration file and the files that ``--plugin`` names."""
    places = [reference.rpartition(":")[0] for reference in plugins]
    files = [Path(place) for place in places if place.endswith(".py")]
    return WatchedFiles(([] if config is None else [config]) + list(dict.fromkeys(files)))


def _signature(path: Path) -> Signature:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
