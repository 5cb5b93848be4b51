"""HTTP extenders in a configuration: reading, faults, and what NodeResourcesFit leaves to them."""

from __future__ import annotations

import pytest

from moorage.base.errors import ConfigError
from moorage.config.extenders import Extender, ManagedResource
from moorage.config.load import parse_config
from moorage.config.merge import expand_profiles
from moorage.plugins.in_tree import in_tree_registry

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
URL = "urlPrefix: http://x"


def read(extenders: str) -> list[Extender]:
    return parse_config(f"{HEAD}extenders: [{extenders}]").scheduler.extenders


def test_every_field_is_read():
    (extender,) = read(
        "{urlPrefix: 'https://x/y', filterVerb: f, preemptVerb: p, prioritizeVerb: s, weight: 3, "
        "bindVerb: b, enableHTTPS: true, httpTimeout: 1.5s, nodeCacheCapable: true, "
        "managedResources: [{name: a.b/c, ignoredByScheduler: true}], ignorable: true, "
        "tlsConfig: {insecure: true, serverName: z}}"
    )
    assert (extender.url_prefix, extender.filter_verb, extender.weight) == ("https://x/y", "f", 3)
    assert (extender.timeout_seconds, extender.enable_https) == (1.5, True)
    assert extender.managed_resources == [ManagedResource(name="a.b/c", ignored_by_scheduler=True)]
    assert extender.tls_config is not None
    assert extender.tls_config.server_name == "z"


@pytest.mark.parametrize("text", ["", ", httpTimeout: 0s"])
def test_a_call_may_take_five_seconds_unless_told_otherwise(text):
    assert read(f"{{{URL}{text}}}")[0].timeout_seconds == 5.0


NO_WEIGHT = "must have a positive weight applied to it"


@pytest.mark.parametrize(
    ("extenders", "fault"),
    [
        pytest.param(
            "{urlPrefix: x}",
            'extenders[0].urlPrefix: Invalid value: "x": must be an http or https URL',
            id="no URL",
        ),
        pytest.param(
            f"{{{URL}, prioritizeVerb: s}}",
            f"extenders[0].weight: Invalid value: 0: {NO_WEIGHT}",
            id="scores without weight",
        ),
        pytest.param(
            f"{{{URL}, bindVerb: b}}, {{{URL}, bindVerb: b}}",
            'extenders: Invalid value: "found 2 extenders implementing bind": only one extender '
            "can implement bind",
            id="two that bind",
        ),
        pytest.param(
            f"{{{URL}, managedResources: [{{name: a.b/c}}]}}, "
            f"{{{URL}, managedResources: [{{name: a.b/c}}]}}",
            'extenders[1].managedResources[0].name: Invalid value: "a.b/c": duplicate extender '
            "managed resource name",
            id="a resource twice",
        ),
        pytest.param(
            f"{{{URL}, managedResources: [{{name: cpu}}]}}",
            'extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended '
            "resource name",
            id="no extended resource",
        ),
        pytest.param(
            f"{{{URL}, httpTimeout: soon}}",
            'extenders[0].httpTimeout: Invalid value: "soon": '
            "invalid duration 'soon': write it like 15s or 1m30s",
            id="no duration",
        ),
        pytest.param(
            f"{{{URL}, httpTimeout: -1s}}",
            'extenders[0].httpTimeout: Invalid value: "-1s": must not be negative',
            id="before it began",
        ),
        pytest.param(
            f"{{{URL}, tlsConfig: {{keyData: '!', certFile: c}}}}",
            "extenders[0].tlsConfig.keyData: Invalid value: must be base64",
            id="a key is not shown",
        ),
        pytest.param(
            f"{{{URL}, tlsConfig: {{certFile: c}}}}",
            "extenders[0].tlsConfig: Required value: certificate and key, or neither",
            id="half a certificate",
        ),
        pytest.param(
            f"{{{URL}, tlsConfig: {{insecure: true, caFile: c}}}}",
            "extenders[0].tlsConfig.insecure: Invalid value: true: specifying a root certificates "
            "file with the insecure flag is not allowed",
            id="trust nobody and everybody",
        ),
        pytest.param(
            f"{{{URL}, filterVerbs: f}}",
            'unknown field "extenders[0].filterVerbs" (did you mean "filterVerb"?)',
            id="unknown field",
        ),
    ],
)
def test_faults(extenders, fault):
    with pytest.raises(ConfigError) as caught:
        read(extenders)
    assert caught.value.faults == (fault,)


def test_resources_left_to_extenders_are_ignored_in_every_profile():
    config = parse_config(
        f"{HEAD}extenders: [{{{URL}, managedResources: "
        "[{name: a.b/c, ignoredByScheduler: true}, {name: a.b/d}]}]\n"
        "profiles: [{schedulerName: one}, {schedulerName: two, pluginConfig: "
        "[{name: NodeResourcesFit, args: {ignoredResources: [e.f/g]}}]}]\n"
    )
    specs = expand_profiles(config.scheduler, in_tree_registry())
    ignored = [spec.plugin_args["NodeResourcesFit"].ignored_resources for spec in specs]
    assert ignored == [("a.b/c",), ("a.b/c",)]
