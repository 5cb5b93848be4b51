"""Asks PyPI for known vulnerabilities of every locked dependency: ``make audit``.

PyPI tells the advisories of a version on the page of that version, and those of the newest version
on the page of the project. A mirror may have the second page only. `RECORD` keeps the answers of
the day the lock was made, for machines that reach neither page. So each dependency is answered for
now, or on a day that is told, or it is told that nobody answered for it.

``--record`` writes the answers down. ``--recorded`` accepts an answer of the record where PyPI
gives none now, as CI does; without it every dependency must be answered for now.
"""

from __future__ import annotations

import datetime
import re
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import msgspec
from packaging.version import Version

from moorage.base.clock import NS_PER_SECOND, SystemClock

LOCK = Path("requirements.lock")
RECORD = Path("tests/advisories.json")
RECORD_DAYS_MAX = 90  # older answers still count, with a warning
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
_PAGES = "https://pypi.org/pypi"
_SECONDS_MAX = 30.0
_ABSENT = 404

Get = Callable[[str], bytes | None]
"""Returns a page by its URL, None if there is no such page; raises OSError if nobody answers."""


class Advisory(msgspec.Struct, frozen=True, omit_defaults=True):
    """A known vulnerability, and the versions without it."""

    id: str
    fixed_in: list[str] = []
    withdrawn: str | None = None


class _Info(msgspec.Struct, frozen=True):
    version: str


class _Page(msgspec.Struct, frozen=True):
    info: _Info
    vulnerabilities: list[Advisory]


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The advisories of one version, or the reason why there is no answer."""

    advisories: list[Advisory] = []
    silent: str = ""


class Record(msgspec.Struct, frozen=True):
    """The answers of one day, by ``name==version``."""

    asked: datetime.date
    answers: dict[str, Answer]


def locked(text: str) -> list[str]:
    """Return every pinned dependency of a lock, as ``name==version``."""
    return sorted({f"{name}=={version}" for name, version in _PIN.findall(text)})


def ask(pin: str, get: Get) -> Answer:
    """Return what PyPI says of one version."""
    name, _, version = pin.partition("==")
    try:
        body = get(f"{_PAGES}/{name}/{version}/json") or get(f"{_PAGES}/{name}/json")
        if body is None:
            return Answer(silent="PyPI does not have it")
        page = msgspec.json.decode(body, type=_Page)
    except OSError as error:
        return Answer(silent=f"PyPI is not reached: {error}")
    except msgspec.DecodeError as error:
        return Answer(silent=f"PyPI's answer cannot be read: {error}")
    if Version(page.info.version) != Version(version):
        return Answer(silent=f"PyPI answers for {page.info.version} only")
    return Answer([each for each in page.vulnerabilities if not each.withdrawn])


def judge(
    pins: list[str],
    now: Mapping[str, Answer],
    record: Record | None,
    *,
    today: datetime.date,
) -> tuple[int, list[str]]:
    """Return the exit code and what to say.

    Parameters
    ----------
    pins
        Every dependency.
    now
        The answers of this run.
    record
        The answers that count where there is none now; None if only today's answers count. A
        dependency that was silent on the day of the record is told, and is no failure.
    today
        The day of this run.
    """
    faults: list[str] = []
    notes: list[str] = []
    checked = recorded = 0
    for pin in pins:
        answer, told = now[pin], ""
        kept = None if record is None else record.answers.get(pin)
        if answer.silent and record is not None and kept is not None:
            recorded += not kept.silent
            answer, told = kept, f" (of {record.asked})"
        if answer.silent:
            (notes if told else faults).append(f"not checked: {pin}: {answer.silent}{told}")
            continue
        checked += 1
        for each in answer.advisories:
            fixed = ", ".join(each.fixed_in) or "no version"
            faults.append(f"{pin}: {each.id}, fixed in {fixed}{told}")
    if not checked:
        return 1, [*faults, *notes, f"NOTHING WAS CHECKED of {len(pins)} dependencies"]
    if record is not None and recorded and (today - record.asked).days > RECORD_DAYS_MAX:
        notes.append(f"the recorded answers are old: run make audit ARGS=--record, {record.asked}")
    counted = (
        f"{checked} of {len(pins)} dependencies were checked, {recorded} of them by the record"
    )
    return int(bool(faults)), [*faults, *notes, counted]


def read_record() -> Record:
    """Return the record that is kept with the lock."""
    return msgspec.json.decode(RECORD.read_bytes(), type=Record)


def _write_record(now: Mapping[str, Answer], today: datetime.date) -> None:
    record = msgspec.json.encode(Record(today, dict(sorted(now.items()))))
    RECORD.write_bytes(msgspec.json.format(record, indent=1) + b"\n")


def _fetch(context: ssl.SSLContext, url: str) -> bytes | None:
    try:
        # The scheme is https, written above.
        with urllib.request.urlopen(url, timeout=_SECONDS_MAX, context=context) as page:
            body: bytes = page.read()
    except urllib.error.HTTPError as error:
        if error.code == _ABSENT:
            return None
        raise
    return body


def main() -> int:
    """Ask, and judge the answers."""
    options = sys.argv[1:]
    today = datetime.datetime.fromtimestamp(SystemClock().now_ns() // NS_PER_SECOND, datetime.UTC)
    pins = locked(LOCK.read_text(encoding="utf-8"))
    # One after the other: TLS in several threads at once ended the interpreter by SIGSEGV.
    fetch = partial(_fetch, ssl.create_default_context())
    now = {pin: ask(pin, fetch) for pin in pins}
    if "--record" in options:
        _write_record(now, today.date())
    accepted = read_record() if options else None
    code, lines = judge(pins, now, accepted, today=today.date())
    sys.stdout.writelines(f"audit: {line}\n" for line in lines)
    return code


if __name__ == "__main__":
    sys.exit(main())
