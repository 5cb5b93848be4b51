"""The rules of security contexts, and of what a pod shares with its host.

Mirrors kubernetes v1.36 pkg/apis/core/validation/validation.go (ValidateSecurityContext,
validatePodSpecSecurityContext, validateHostUsers, validateOS, validateLinux, validateWindows,
validateWindowsSecurityContextOptions, validateWindowsHostProcessPod).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from moorage.api.names import dns_subdomain_faults
from moorage.kinds.fields import if_present, name_rule, one_of, rules, within
from moorage.kinds.kind import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from moorage.kinds.tree import Json, child, items, objects, strings, text
from moorage.kinds.volumes.sources import path_inside

_ID_MAX: Final = 2**31 - 1
_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_LOCAL_PROFILE_LENGTH_MAX: Final = 4095
_SEGMENT: Final = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL: Final = rf"({_SEGMENT}[\./])*{_SEGMENT}"
_SYSCTL_LENGTH_MAX: Final = 253
_IPC: Final = ("kernel.shm", "kernel.msg", "fs.mqueue.")

_id = if_present(within(0, _ID_MAX, f"must be between 0 and {_ID_MAX}, inclusive"))


def _local_path(profile: Json, where: str) -> list[FieldError]:
    path, place = profile.get("localhostProfile"), f"{where}.localhostProfile"
    if text(profile, "type") == "Localhost":
        detail = "must be set when seccomp type is Localhost"
        return [required(place, detail)] if path is None else path_inside(path, place)
    detail = "can only be set when seccomp type is Localhost"
    return [] if path is None else [invalid(place, profile, detail)]


def _seccomp(profile: Json, where: str) -> list[FieldError]:
    kind, errors = text(profile, "type"), []
    if not kind:
        detail = "type is required when seccompProfile is set"
        errors.append(required(f"{where}.type", detail))
    elif kind not in _PROFILES:
        errors.append(not_supported(f"{where}.type", kind, _PROFILES))
    return errors + _local_path(profile, where)


def _app_armor(profile: Json, where: str) -> list[FieldError]:
    kind, name = text(profile, "type"), profile.get("localhostProfile")
    place = f"{where}.localhostProfile"
    if not kind:
        return [required(f"{where}.type", "type is required when appArmorProfile is set")]
    if kind not in _PROFILES:
        return [not_supported(f"{where}.type", kind, _PROFILES)]
    if kind != "Localhost":
        detail = "can only be set when AppArmor type is Localhost"
        return [] if name is None else [invalid(place, name, detail)]
    errors = []
    if name is not None and name != name.strip():
        errors.append(invalid(place, name, "must not be padded with whitespace"))
    elif not name:
        errors.append(required(place, "must be set when AppArmor type is Localhost"))
    if len(name or "") > _LOCAL_PROFILE_LENGTH_MAX:
        errors.append(too_long(place, _LOCAL_PROFILE_LENGTH_MAX))
    return errors


_CREDENTIAL_KIB: Final = 64
_DOMAIN_LENGTH_MAX: Final = 255
_USER_LENGTH_MAX: Final = 104
_NET_BIOS: Final = re.compile(r"""[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}""")
_DNS_PART: Final = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DNS: Final = re.compile(rf"{_DNS_PART}(?:\.{_DNS_PART})*")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def _user_faults(name: str) -> Iterator[str]:
    """Yield what is wrong with the name of a Windows user, which may have a domain."""
    if not name:
        yield "runAsUserName cannot be an empty string"
        return
    if _CONTROL.search(name):
        yield "runAsUserName cannot contain control characters"
        return
    domain, backslash, user = name.partition("\\")
    if "\\" in user:
        yield "runAsUserName cannot contain more than one backslash"
        return
    if not backslash:
        domain, user = "", name
    if len(domain) > _DOMAIN_LENGTH_MAX:
        limit = _DOMAIN_LENGTH_MAX + 1
        yield f"runAsUserName's Domain length must be under {limit} characters"
    if backslash and not (_NET_BIOS.fullmatch(domain) or _DNS.fullmatch(domain)):
        yield "runAsUserName's Domain doesn't match the NetBios nor the DNS format"
    if not user:
        yield "runAsUserName's User cannot be empty"
    elif len(user) > _USER_LENGTH_MAX:
        yield f"runAsUserName's User length must not be longer than {_USER_LENGTH_MAX} characters"
    if user and not user.strip(". "):
        yield "runAsUserName's User cannot contain only periods or spaces"
    if any(each in user for each in '"/\\:;|=,+*?<>@[]'):
        yield "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"


def _credential(spec: str, where: str) -> list[FieldError]:
    if not spec:
        return [invalid(where, spec, "gmsaCredentialSpec cannot be an empty string")]
    if len(spec) > _CREDENTIAL_KIB * 1024:
        detail = f"gmsaCredentialSpec size must be under {_CREDENTIAL_KIB} KiB"
        return [invalid(where, spec, detail)]
    return []


def _user(name: str, where: str) -> list[FieldError]:
    return [invalid(where, name, fault) for fault in _user_faults(name)]


_windows = rules(
    (
        "gmsaCredentialSpecName",
        if_present(name_rule(dns_subdomain_faults, empty="refused")),
    ),
    ("gmsaCredentialSpec", if_present(_credential)),
    ("runAsUserName", if_present(_user)),
)
_profiles = rules(
    ("seccompProfile", if_present(_seccomp)),
    ("windowsOptions", if_present(_windows)),
    ("appArmorProfile", if_present(_app_armor)),
)


def check_security_context(context: Json, where: str, *, host_users: bool) -> list[FieldError]:
    """Check the security context of a container.

    Parameters
    ----------
    context, where
        The context and its path.
    host_users
        Whether the pod has the users of its host.
    """
    mount = context.get("procMount")
    errors = _id(context.get("runAsUser"), f"{where}.runAsUser")
    errors += _id(context.get("runAsGroup"), f"{where}.runAsGroup")
    if mount is not None:
        errors += one_of("Default", "Unmasked")(mount, f"{where}.procMount")
        if host_users and mount == "Unmasked":
            detail = "`hostUsers` must be false to use `Unmasked`"
            errors.append(invalid(f"{where}.procMount", mount, detail))
    if context.get("allowPrivilegeEscalation") is False:
        cannot = "cannot set `allowPrivilegeEscalation` to false and"
        if context.get("privileged") is True:
            errors.append(invalid(where, context, f"{cannot} `privileged` to true"))
        if "CAP_SYS_ADMIN" in strings(context, "capabilities", "add"):
            detail = f"{cannot} `capabilities.Add` CAP_SYS_ADMIN"
            errors.append(invalid(where, context, detail))
    return errors + _profiles(context, where)


def _sysctls(spec: Json, context: Json, where: str) -> list[FieldError]:
    errors, names = [], set[str]()
    for index, entry in enumerate(objects(context, "sysctls")):
        name, place = text(entry, "name"), f"{where}[{index}].name"
        if not name:
            errors.append(required(place))
        elif len(name) > _SYSCTL_LENGTH_MAX or not re.fullmatch(_SYSCTL, name):
            limit = f"must have at most {_SYSCTL_LENGTH_MAX} characters and match regex"
            errors.append(invalid(place, name, f"{limit} ^{_SYSCTL}$"))
        elif name in names:
            errors.append(duplicate(place, name))
        names.add(name)
        plain = name.replace("/", ".")
        if spec.get("hostNetwork") is True and plain.startswith("net."):
            detail = "may not be specified when 'hostNetwork' is true"
            errors.append(invalid(place, name, detail))
        elif spec.get("hostIPC") is True and (plain == "kernel.sem" or plain.startswith(_IPC)):
            errors.append(invalid(place, name, "may not be specified when 'hostIPC' is true"))
    return errors


_policies = rules(
    ("fsGroupChangePolicy", one_of("Always", "OnRootMismatch", empty="absent")),
    _profiles,
    ("supplementalGroupsPolicy", one_of("Merge", "Strict", empty="absent")),
    ("seLinuxChangePolicy", one_of("MountOption", "Recursive", empty="absent")),
)


def check_pod_security(spec: Json, field: str) -> list[FieldError]:
    """Check the security context of a pod, what it shares with its host, and its system."""
    context, where = child(spec, "securityContext"), f"{field}.securityContext"
    errors = []
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        errors += _id(context.get(name), f"{where}.{name}")
    for index, group in enumerate(items(context, "supplementalGroups")):
        errors += _id(group, f"{where}.supplementalGroups[{index}]")
    if spec.get("shareProcessNamespace") is True and spec.get("hostPID") is True:
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(f"{where}.shareProcessNamespace", True, detail))
    errors += _sysctls(spec, context, f"{where}.sysctls")
    errors += _policies(context, where)
    if spec.get("hostUsers") is False:
        # The paths of these errors are upstream's. hostNetwork is allowed, as with upstream's gate
        # UserNamespacesHostNetworkSupport: nodes declare whether they can run such a pod.
        errors += [
            forbidden(f"{field}.{path}", "when `pod.Spec.HostUsers` is false")
            for name, path in (("hostPID", "HostPID"), ("hostIPC", "HostIPC"))
            if spec.get(name) is True
        ]
    return errors + _host_processes(spec, field) + _system(spec, field)


def _containers(spec: Json, field: str) -> Iterator[tuple[Json, str]]:
    """Yield the security context of each container, with its path."""
    for which in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(objects(spec, which)):
            place = f"{field}.{which}[{index}].securityContext"
            yield child(container, "securityContext"), place


def _host_processes(spec: Json, field: str) -> list[FieldError]:
    path = ("windowsOptions", "hostProcess")
    whole = child(spec, "securityContext", path[0]).get(path[1])
    errors, on_host = [], []
    for context, where in _containers(spec, field):
        own = child(context, path[0]).get(path[1])
        if None not in (whole, own) and whole != own:
            shown = str(whole).lower()
            detail = f"pod hostProcess value must be identical if both are specified, was {shown}"
            errors.append(invalid(f"{where}.{'.'.join(path)}", own, detail))
        on_host.append(whole if own is None else own)
    if True not in on_host:
        return errors
    if not all(on_host):
        detail = (
            "If pod contains any hostProcess containers then all containers must be HostProcess "
            "containers"
        )
        errors.append(invalid(field, "", detail))
    if spec.get("hostNetwork") is not True:
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        errors.append(invalid(f"{field}.hostNetwork", False, detail))
    return errors


_SYSTEMS: Final = ("linux", "windows")
_NOT_ON_WINDOWS: Final = (
    *("appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy"),
    *("sysctls", "runAsUser", "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy"),
)
_NO_CONTAINER_ON_WINDOWS: Final = (
    *("appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities"),
    *("readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation", "procMount"),
    *("runAsUser", "runAsGroup"),
)
_NO_POD_ON_WINDOWS: Final = ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace")


def _system(spec: Json, field: str) -> list[FieldError]:
    """Check the operating system of a pod, and the fields that it does not have."""
    if spec.get("os") is None:
        return []
    name = text(spec, "os", "name")
    if not name:
        return [required(f"{field}.os.name", "cannot be empty")]
    if name not in _SYSTEMS:
        return [not_supported(f"{field}.os", name, _SYSTEMS)]
    context, where = child(spec, "securityContext"), f"{field}.securityContext"
    if name == "linux":
        detail = "windows options cannot be set for a linux pod"
        errors = [forbidden(f"{where}.windowsOptions", detail)]
        errors = errors if context.get("windowsOptions") is not None else []
        inner: tuple[str, ...] = ("windowsOptions",)
    else:
        inner = _NO_CONTAINER_ON_WINDOWS
        errors = [*_set_fields(spec, field, _NO_POD_ON_WINDOWS, name)]
        errors += _set_fields(context, where, _NOT_ON_WINDOWS, name)
    for each, place in _containers(spec, field):
        errors += _set_fields(each, place, inner, name)
    return errors


def _set_fields(obj: Json, where: str, names: tuple[str, ...], system: str) -> Iterator[FieldError]:
    """Yield an error for each of some fields that is set; false and [] of a pod are not."""
    detail = f"cannot be set for a {system} pod"
    for name in names:
        value: Any = obj.get(name)
        unset = value is None or (name in ("hostPID", "hostIPC") and value is False)
        if not unset and (name != "sysctls" or value):
            yield forbidden(f"{where}.{name}", detail)
