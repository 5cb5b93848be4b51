"""The page of kube-scheduler's flags, from the table that the command line is made of."""

from __future__ import annotations

from moorage.cli.run.flags import FLAGS

_HEADER = """# kube-scheduler's flags

<!-- Written by `make docs` from scheduler/src/moorage/cli/run/flags.py. Do not edit. -->

`moorage run` takes every flag of kube-scheduler v1.36, so that a manifest need not change.
Effective ones work as there. Ones without effect are accepted, and a warning says so. Refused ones
would be unsafe or misleading to ignore: with one of them moorage does not start (exit code 2).

As with kube-scheduler, `--leader-elect*` win over the file of `--config`, and the deprecated
`--kube-api-qps` and `--kube-api-burst` count only without one. `-v` takes a number or may be
repeated.

| Flag | Kind | kube-scheduler's default | Here | Note |
|---|---|---|---|---|
"""


def flags_page() -> str:
    """Return the page: one row a flag, by name."""
    rows = []
    for flag in FLAGS:
        default = f"`{flag.default}`" if flag.default else ""
        rows.append(
            f"| `--{flag.name}` | {flag.kind} | {default} | {flag.effect.value} | {flag.note} |\n"
        )
    return _HEADER + "".join(rows)
