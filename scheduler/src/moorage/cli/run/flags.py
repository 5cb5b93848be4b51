"""Every flag of kube-scheduler v1.36, and its effect in ``moorage run``.

One table for the command line, its documentation (``docs/reference/flags.md``) and its tests.
Nothing is ignored silently: a flag is effective, accepted with a warning, or refused.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

import click
import msgspec

from moorage.api.schedules.durations import parse_duration
from moorage.base.errors import UsageError
from moorage.config.emulation import EMULATED_TEXT, OLDEST_TEXT

F = TypeVar("F", bound=Callable[..., Any])


class Effect(enum.Enum):
    """The effect of a flag in moorage."""

    EFFECTIVE = "effective"
    """The flag works as in kube-scheduler, or as its note says."""
    ACCEPTED = "accepted, no effect"
    """Accepted, so that manifests need not change; a warning says that the flag has no effect."""
    REFUSED = "refused"
    """Refused, as ignoring it would be unsafe or misleading."""


class Flag(msgspec.Struct, frozen=True):
    """One flag.

    Parameters
    ----------
    name
        Name without dashes.
    kind
        ``string``, ``bool``, ``int``, ``float``, ``duration`` or ``strings``.
    default
        The default, as kube-scheduler prints it.
    effect
        The effect of the flag in moorage.
    note
        A remark for users, a sentence without full stop.
    own
        Whether ``moorage run`` defines its own option for the flag.
    """

    name: str
    kind: str
    default: str
    effect: Effect
    note: str
    own: bool = False

    @property
    def parameter(self) -> str:
        """Name of click's parameter for the flag."""
        return self.name.replace("-", "_")


_ON, _NONE, _NO = Effect.EFFECTIVE, Effect.ACCEPTED, Effect.REFUSED

_TLS: Final = "Python's TLS decides; to narrow it, set --tls-cipher-suites"
SNI: Final = "tls-sni-cert-key"
"""The only flag of several values whose values have commas inside."""
_LOG: Final = "log lines are written at once, to standard error"

FLAGS: Final[tuple[Flag, ...]] = (
    Flag("allow-metric-labels", "strings", "[]", _NONE, "no metric's labels are cut down"),
    Flag("allow-metric-labels-manifest", "string", "", _NONE, "no metric's labels are cut down"),
    Flag(
        "authentication-kubeconfig",
        "string",
        "",
        _ON,
        "Server that reviews tokens; in a pod, the cluster's unless given",
    ),
    Flag(
        "authentication-skip-lookup",
        "bool",
        "false",
        _ON,
        "Do not look up the authorities of callers in the cluster",
    ),
    Flag(
        "authentication-token-webhook-cache-ttl",
        "duration",
        "10s",
        _ON,
        "How long the review of a token is kept",
    ),
    Flag(
        "authentication-tolerate-lookup-failure",
        "bool",
        "true",
        _ON,
        "Start although the authorities of callers cannot be looked up",
    ),
    Flag(
        "authorization-always-allow-paths",
        "strings",
        "/healthz,/readyz,/livez",
        _ON,
        "Paths that everybody may read; a * at the end stands for the rest",
    ),
    Flag(
        "authorization-kubeconfig",
        "string",
        "",
        _ON,
        "Server that reviews rights; in a pod, the cluster's unless given",
    ),
    Flag(
        "authorization-webhook-cache-authorized-ttl",
        "duration",
        "10s",
        _ON,
        "How long the review of a right is kept where it says yes",
    ),
    Flag(
        "authorization-webhook-cache-unauthorized-ttl",
        "duration",
        "10s",
        _ON,
        "How long it is kept where it says no",
    ),
    Flag("bind-address", "string", "0.0.0.0", _ON, "Address to serve health and metrics on"),
    Flag(
        "cert-dir",
        "string",
        "",
        _ON,
        "Directory of kube-scheduler.crt and .key, made if absent; for want of --tls-cert-file",
    ),
    Flag(
        "client-ca-file",
        "string",
        "",
        _ON,
        "Authorities whose client certificates identify users, PEM",
    ),
    Flag("config", "string", "", _ON, "Configuration file", own=True),
    Flag("contention-profiling", "bool", "true", _NONE, "there are no locks to profile"),
    Flag("disable-http2-serving", "bool", "false", _NONE, "HTTP/1.1 is all that is served"),
    Flag("disabled-metrics", "strings", "", _ON, "Metrics to leave out of /metrics"),
    Flag(
        "emulated-version",
        "strings",
        "",
        _ON,
        EMULATED_TEXT,
    ),
    Flag("feature-gates", "strings", "", _ON, "Gates to switch: A=true,B=false"),
    Flag("help", "bool", "false", _ON, "This help", own=True),
    Flag("http2-max-streams-per-connection", "int", "0", _NONE, "HTTP/1.1 is all that is served"),
    Flag(
        "kube-api-burst", "int", "100", _ON, "Deprecated: clientConnection.burst, without --config"
    ),
    Flag("kube-api-content-type", "string", "", _NONE, "JSON is all that is spoken"),
    Flag("kube-api-qps", "float", "50", _ON, "Deprecated: clientConnection.qps, without --config"),
    Flag("kubeconfig", "string", "", _ON, "How to reach the API server", own=True),
    Flag("leader-elect", "bool", "true", _ON, "Schedule only while holding the Lease"),
    Flag("leader-elect-lease-duration", "duration", "15s", _ON, "How long others respect it"),
    Flag("leader-elect-renew-deadline", "duration", "10s", _ON, "How long to try to renew it"),
    Flag("leader-elect-resource-lock", "string", "leases", _ON, "Nothing else than leases"),
    Flag("leader-elect-resource-name", "string", "kube-scheduler", _ON, "Name of the Lease"),
    Flag("leader-elect-resource-namespace", "string", "kube-system", _ON, "Its namespace"),
    Flag("leader-elect-retry-period", "duration", "2s", _ON, "Time between two tries"),
    Flag("log-flush-frequency", "duration", "5s", _NONE, _LOG),
    Flag("log-json-info-buffer-size", "string", "0", _NONE, _LOG),
    Flag("log-json-split-stream", "bool", "false", _NONE, _LOG),
    Flag("log-text-info-buffer-size", "string", "0", _NONE, _LOG),
    Flag("log-text-split-stream", "bool", "false", _NONE, _LOG),
    Flag(
        "logging-format",
        "string",
        "text",
        _ON,
        "text: lines with klog's header; json: an object a line",
    ),
    Flag("master", "string", "", _ON, "Address of the API server, in place of the kubeconfig's"),
    Flag(
        "min-compatibility-version",
        "strings",
        "",
        _ON,
        OLDEST_TEXT,
    ),
    Flag(
        "permit-address-sharing",
        "bool",
        "false",
        _NONE,
        "addresses are always shared (SO_REUSEADDR)",
    ),
    Flag(
        "permit-port-sharing",
        "bool",
        "false",
        _ON,
        "Let several processes listen on the port (SO_REUSEPORT)",
    ),
    Flag(
        "pod-max-in-unschedulable-pods-duration",
        "duration",
        "5m0s",
        _ON,
        "Deprecated: how long a pod that no event helps waits until it is tried again",
    ),
    Flag("profiling", "bool", "true", _NONE, "there are no profiling endpoints"),
    Flag(
        "requestheader-allowed-names",
        "strings",
        "",
        _ON,
        "Common names of front proxies; empty for any",
    ),
    Flag(
        "requestheader-client-ca-file",
        "string",
        "",
        _ON,
        "Authorities whose client certificates identify front proxies, PEM",
    ),
    Flag(
        "requestheader-extra-headers-prefix",
        "strings",
        "x-remote-extra-",
        _ON,
        "Beginnings of headers with further facts about the user",
    ),
    Flag(
        "requestheader-group-headers",
        "strings",
        "x-remote-group",
        _ON,
        "Headers with the groups of the user",
    ),
    Flag("requestheader-uid-headers", "strings", "", _ON, "Headers with the uid of the user"),
    Flag(
        "requestheader-username-headers",
        "strings",
        "x-remote-user",
        _ON,
        "Headers in which a front proxy names its user",
    ),
    Flag(
        "secure-port",
        "int",
        "10259",
        _ON,
        "Port for health and metrics over HTTPS; 0: do not serve",
    ),
    Flag("show-hidden-metrics-for-version", "string", "", _NONE, "no metric is hidden"),
    Flag(
        "tls-cert-file",
        "string",
        "",
        _ON,
        "Certificate to serve with, PEM; read again when it changes",
    ),
    Flag(
        "tls-cipher-suites", "strings", "", _ON, "Cipher suites up to TLS 1.2, by the names of Go"
    ),
    Flag("tls-curve-preferences", "strings", "", _NO, _TLS),
    Flag("tls-min-version", "string", "", _ON, "VersionTLS12 (the default) or VersionTLS13"),
    Flag("tls-private-key-file", "string", "", _ON, "Key of --tls-cert-file, PEM"),
    Flag(
        SNI,
        "strings",
        "[]",
        _ON,
        "Certificate and key for some server names: FILE,FILE or FILE,FILE:NAME,*.NAME",
    ),
    Flag(
        "v",
        "int",
        "0",
        _ON,
        "2: how each attempt ended; 3: where attempts and bindings begin; 5: how many nodes were "
        "feasible; 10: every plugin's score for every node. -v is 2, -vv is 5, -vvv is 10. The "
        "start and attempts over 100 ms are told always",
        own=True,
    ),
    Flag("version", "bool", "false", _ON, "Print the version and end"),
    Flag("vmodule", "strings", "", _NONE, "verbosity is one for all; see -v"),
    Flag("write-config-to", "string", "", _ON, "Write the configuration, with defaults, and end"),
)
"""Flags by name. Source: kubernetes v1.36 ``cmd/kube-scheduler/app/options``, from ``--help``."""

_BY_PARAMETER: Final = {flag.parameter: flag for flag in FLAGS}


def kube_scheduler_flags(function: F) -> F:
    """Add every flag of the table for which the command defines no option.

    Help shows only effective flags. Values arrive by parameter name, None for a flag not given.
    """
    for flag in reversed(FLAGS):
        if flag.own:
            continue
        function = click.option(
            f"--{flag.name}",
            flag.parameter,
            type=_TYPES[flag.kind],
            default=None,
            hidden=flag.effect is not Effect.EFFECTIVE,
            help=f"{flag.note}." if flag.effect is Effect.EFFECTIVE else None,
            metavar=flag.kind.upper(),
            multiple=flag.kind == "strings",
            is_flag=False,
            # As Go's flags: --leader-elect alone means true.
            flag_value="true" if flag.kind == "bool" else None,
        )(function)
    return function


class _Duration(click.ParamType[str]):
    """A Go duration, kept as written."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            parse_duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return str(value)


_TYPES: Final[Mapping[str, click.ParamType[Any]]] = {
    "string": click.STRING,
    "strings": click.STRING,
    "bool": click.BOOL,
    "int": click.INT,
    "float": click.FLOAT,
    "duration": _Duration(),
}


_PAST: Final = (
    "--algorithm-provider",
    "--hard-pod-affinity-symmetric-weight",
    "--lock-object-name",
    "--lock-object-namespace",
    "--policy-config-file",
    "--scheduler-name",
)
"""Flags of the past that `moorage config convert` takes."""


class RunCommand(click.Command):
    """A command that takes its flags as Go programs do: ``-v=2``, ``-v 2`` and ``--v 2``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of a command line.

        Raises
        ------
        UsageError
            A flag of kube-scheduler up to 1.22 is given.
        """
        for word in args:
            name = word.partition("=")[0]
            if name in _PAST:
                raise UsageError(
                    f"{name} went with Kubernetes 1.23: `moorage config convert {name} ...` "
                    "writes a file for --config"
                )
        return super().parse_args(ctx, list(_verbosity_as_letters(args)))


def _verbosity_as_letters(words: list[str]) -> Iterator[str]:
    """Turn ``-v=5``, ``-v 5`` and ``-vv`` into as many ``-v`` as klog's level says."""
    waiting, letters, level = list(words), 0, 0
    while waiting:
        word = waiting.pop(0)
        if word == "--":
            yield from ["-v"] * _level(letters, level)
            yield from [word, *waiting]
            return
        name, equals, value = word.partition("=")
        if name not in ("-v", "--v"):
            if word.startswith("-v") and not word.strip("-v"):
                letters += len(word) - 1
            else:
                yield word
            continue
        if not equals and waiting and waiting[0].isdigit():
            value = waiting.pop(0)
        if value.isdigit():
            level = int(value)
        elif equals:
            raise UsageError(f"{word}: -v takes a number, such as -v=2")
        else:
            letters += 1
    yield from ["-v"] * _level(letters, level)


def _level(letters: int, level: int) -> int:
    """Return klog's level: moorage's own ``-v``, ``-vv`` and ``-vvv`` are 2, 5 and 10."""
    return min(max(level, (0, 2, 5, 10)[min(letters, 3)]), 10)


def flags_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags that were given, by name, and refuse forbidden ones.

    Parameters
    ----------
    values
        Values from click, by parameter.

    Raises
    ------
    UsageError
        A flag is refused; the message lists every refused flag.
    """
    flags = {
        (flag := _BY_PARAMETER[parameter]).name: _joined(value, ";" if flag.name == SNI else ",")
        for parameter, value in values.items()
        if value not in (None, ())
    }
    faults = [
        f"--{flag.name}: not supported: {flag.note}"
        for flag in FLAGS
        if flag.effect is Effect.REFUSED and flag.name in flags
    ]
    if faults:
        raise UsageError("; ".join(faults))
    return flags


def warnings(flags: Mapping[str, Any], *, has_config: bool) -> Iterator[str]:
    """Yield a warning for each given flag that has no effect."""
    for flag in FLAGS:
        if flag.name not in flags:
            continue
        if flag.effect is Effect.ACCEPTED:
            yield f"--{flag.name} has no effect: {flag.note}"
        elif has_config and flag.name in ("kube-api-qps", "kube-api-burst"):
            yield f"--{flag.name} has no effect: --config is given, and clientConnection says it"


def values_in_force(flags: Mapping[str, Any]) -> dict[str, str]:
    """Return the value of every flag as Go prints it; defaults for flags not given."""
    values: dict[str, str] = {}
    for flag in FLAGS:
        value = flags.get(flag.name, flag.default)
        text = str(value).lower() if flag.kind == "bool" else str(value)
        listed = flag.kind == "strings" and flag.name != "feature-gates"
        values[flag.name] = f"[{text}]" if listed and text != "[]" else text
    return values


def _joined(value: Any, separator: str) -> Any:
    """Return the values of a repeated flag, joined as in Go."""
    return separator.join(value) if isinstance(value, tuple) else value
