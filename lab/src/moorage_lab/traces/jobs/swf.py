"""Jobs of the Standard Workload Format, the text format of the Parallel Workloads Archive.

Place in the flow: a file to jobs, with every bad line by its number. `presets` and the benchmark of
job queues read traces with it.

Rules: www.cs.huji.ac.il/labs/parallel/workload/swf.html, version 2.2: a line a job, 18 fields
between blanks, -1 for what is not known, comments after ``;``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from moorage.base.errors import ConfigError, UsageError
from moorage_lab.traces.rows import content_of

JOBS_MAX: Final = 1_000_000
"""Jobs of one trace; the longest of the archive has 600,000. A guess for what memory is there."""
_FIELDS_LEAST: Final = 9
_FAULTS_SHOWN: Final = 20
_HEADER: Final = re.compile(r";\s*(MaxProcs|MaxNodes)\s*:\s*(\d+)", re.IGNORECASE)
_CUT_SHORT_SECONDS: Final = 10
"""Run time of a job with a negative one: as the published experiments take it."""


class Job(msgspec.Struct, frozen=True):
    """A job of a trace.

    Parameters
    ----------
    number
        Its number in the trace.
    submit, run, requested
        Seconds: when it was submitted, how long it runs, and how long it said that it would.
    processors
        Processors that it needs at once.
    user
        Number of its user; -1 if not known.
    """

    number: int
    submit: float
    run: float
    processors: int
    requested: float
    user: int = -1


class JobTrace(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of a file, by number.

    Parameters
    ----------
    name
        Name of the file.
    content
        The bytes of the file, unpacked: what tells traces from each other.
    processors
        Processors of the machine as the header says; None if it does not.
    left_out
        Jobs that ran for no time.
    """

    name: str
    content: bytes
    jobs: tuple[Job, ...]
    processors: int | None
    left_out: int


def read_jobs(file: str) -> JobTrace:
    """Read a trace, plain or gzipped.

    Raises
    ------
    ConfigError
        Lines have faults; each is listed with its line.
    UsageError
        The file cannot be read, or has no job.
    """
    content = content_of(file)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: not text in UTF-8: {error}") from error
    jobs: dict[int, Job] = {}
    faults: list[str] = []
    sizes: dict[str, int] = {}
    left_out = 0
    for line, row in enumerate(text.split("\n"), start=1):
        if row.lstrip().startswith(";"):
            sizes |= {each[1].lower(): int(each[2]) for each in _HEADER.finditer(row)}
            continue
        if not row.strip():
            continue
        try:
            job = _job(row.split(), jobs)
        except ValueError as problem:
            faults.append(f"line {line}: {problem}")
            if len(faults) > _FAULTS_SHOWN:
                break
            continue
        if not job.run:
            left_out += 1
            continue
        jobs[job.number] = job
        if len(jobs) > JOBS_MAX:
            raise UsageError(f"{file}: more than {JOBS_MAX:,} jobs; cut the trace")
    if faults:
        raise ConfigError(list(_shortened(faults)), source=file)
    if not jobs:
        raise UsageError(f"{file}: it has no job: a line has 18 fields between blanks")
    return JobTrace(
        name=Path(file).name,
        content=content,
        jobs=tuple(sorted(jobs.values(), key=lambda job: job.number)),
        processors=sizes.get("maxprocs", sizes.get("maxnodes")),
        left_out=left_out,
    )


def _shortened(faults: list[str]) -> Iterator[str]:
    yield from faults[:_FAULTS_SHOWN]
    if len(faults) > _FAULTS_SHOWN:
        yield "and more below it"


def _job(fields: list[str], others: Mapping[int, Job]) -> Job:
    """Return the job of a line.

    Parameters
    ----------
    others
        The jobs of the lines above it, by number.

    Raises
    ------
    ValueError
        The line is bad; the message says which field.
    """
    if len(fields) < _FIELDS_LEAST:
        raise ValueError(f"{len(fields)} fields, and a job has 18")
    number, submit, run = (_number(fields, at) for at in (1, 2, 4))
    processors = max(_number(fields, 5), _number(fields, 8))
    requested = _number(fields, 9)
    if number in others:
        raise ValueError(f"field 1: job {number:g} comes twice")
    if submit < 0:
        raise ValueError(f"field 2: job {number:g} has no submit time")
    if processors < 1:
        raise ValueError(f"fields 5 and 8: job {number:g} asks for no processors")
    run = _CUT_SHORT_SECONDS if run < 0 else run
    return Job(
        number=int(number),
        submit=submit,
        run=run,
        processors=int(processors),
        requested=requested if requested > 0 else run,
        user=int(_number(fields, 12)) if len(fields) > 11 else -1,
    )


def _number(fields: list[str], at: int) -> float:
    """Return the number of a field, counted from 1; a whole one stays an int, as it is exact."""
    text = fields[at - 1]
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not abs(number) < 1e15:
        raise ValueError(f"field {at}: {text!r} is no number")
    return int(number) if number == int(number) else number
