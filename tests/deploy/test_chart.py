"""The chart by a real Helm: plain manifests, schema of values, profiles, high availability.

Helm comes in the package that kubectl comes in; without it these tests are skipped.
"""

from __future__ import annotations

from typing import Any

import pytest

import moorage
from moorage.config.load import parse_config
from moorage.config.merge import expand_profiles
from moorage.config.own import LoadedConfiguration
from moorage.plugins.in_tree import in_tree_registry
from tests.deploy.chart import CHART, ONLY, PLAIN, helm, kept, objects, plain, rendered
from tests.deploy.pod_security import violations

NEEDS_HELM = [pytest.mark.slow, pytest.mark.kubectl]
MODES = {"second": (), "only": ("--values", str(ONLY))}


def only(found: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """Return the only object of a kind."""
    (obj,) = [each for each in found if each["kind"] == kind]
    return obj


def configuration(found: list[dict[str, Any]]) -> LoadedConfiguration:
    """Return the configuration among some objects, as a scheduler reads it."""
    return parse_config(only(found, "ConfigMap")["data"]["scheduler.yaml"])


# --- without Helm -----------------------------------------------------------------------------


def test_the_chart_is_of_this_version() -> None:
    (chart,) = objects((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (moorage.__version__, moorage.__version__)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        pytest.param(
            "second-scheduler.yaml",
            ("moorage", "moorage", "moorage", "moorage", {}, []),
            id="beside the scheduler of the cluster",
        ),
        pytest.param(
            "only-scheduler.yaml",
            (
                "default-scheduler",
                "kube-system",
                "kube-scheduler",
                "system-cluster-critical",
                {"node-role.kubernetes.io/control-plane": ""},
                ["node-role.kubernetes.io/control-plane"],
            ),
            id="in its place, with its Lease",
        ),
    ],
)
def test_a_plain_manifest_runs_two_replicas_apart(name: str, told: tuple[Any, ...]) -> None:
    found = objects(kept(name))
    config = configuration(found).scheduler
    deployment = only(found, "Deployment")["spec"]
    pod = deployment["template"]["spec"]
    assert told == (
        config.profiles[0].scheduler_name,
        config.leader_election.resource_namespace,
        config.leader_election.resource_name,
        pod["priorityClassName"],
        pod.get("nodeSelector", {}),
        [each["key"] for each in pod.get("tolerations", [])],
    )
    labels = deployment["selector"]["matchLabels"]
    assert config.leader_election.leader_elect
    assert deployment["replicas"] == 2
    (apart,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart == {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": labels},
    }
    (spread,) = pod["topologySpreadConstraints"]
    assert spread["topologyKey"] == "topology.kubernetes.io/zone"
    budget = only(found, "PodDisruptionBudget")["spec"]
    assert budget == {"maxUnavailable": 1, "selector": {"matchLabels": labels}}
    assert labels.items() <= deployment["template"]["metadata"]["labels"].items()


# --- with Helm --------------------------------------------------------------------------------


class TestRendered:
    """What a real Helm makes of the chart."""

    pytestmark = NEEDS_HELM

    def test_the_chart_passes_lint(self) -> None:
        done = helm("lint", "--strict", str(CHART))
        assert done.returncode == 0, done.stdout

    @pytest.mark.parametrize("name", sorted(PLAIN))
    def test_a_plain_manifest_is_what_the_chart_renders(self, name: str) -> None:
        assert kept(name) == plain(name), "run python -m tests.deploy.chart"

    @pytest.mark.parametrize("mode", sorted(MODES))
    @pytest.mark.parametrize(
        ("profile", "there", "gone"),
        [
            pytest.param("default", "PrioritySort", "QOSSort", id="default"),
            pytest.param("coscheduling", "Coscheduling", "PrioritySort", id="coscheduling"),
            pytest.param("qos-sort", "QOSSort", "PrioritySort", id="sorted by quality of service"),
            pytest.param(
                "bin-packing", "NodeResourcesFit", "NodeResourcesBalancedAllocation", id="packing"
            ),
        ],
    )
    def test_a_scheduler_takes_each_profile(
        self, mode: str, profile: str, there: str, gone: str
    ) -> None:
        words = ("--namespace", "kube-system", *MODES[mode], "--set", f"profile={profile}")
        config = configuration(objects(rendered(*words)))
        (spec,) = expand_profiles(config.scheduler, in_tree_registry())
        scores = spec.points["score"] if profile == "bin-packing" else None
        names = {name for point in spec.points.values() for name in point}
        assert there in names
        assert gone not in (scores if scores is not None else names)

    def test_profiles_and_own_settings_are_taken_word_for_word(self) -> None:
        words = ["--set", "profiles[0].schedulerName=a", "--set", "profiles[1].schedulerName=b"]
        words += ["--set", "moorageConfiguration.queueCompat=v1.20", "--set", "mode=only"]
        config = configuration(objects(rendered(*words)))
        assert [each.scheduler_name for each in config.scheduler.profiles] == ["a", "b"]
        assert config.own.queue_compat == "v1.20"

    def test_every_value_together_makes_restricted_pods_with_what_was_asked_for(self) -> None:
        words = ["--set", "image.digest=sha256:" + "0" * 64, "--set", "extraArgs={--foo=a b}"]
        words += ["--set", "metrics.serviceMonitor.enabled=true", "--set", "replicas=3"]
        words += ["--set", "metrics.readers[0].kind=ServiceAccount"]
        words += ["--set", "metrics.readers[0].name=prometheus"]
        words += ["--set", "metrics.readers[0].namespace=monitoring"]
        words += ["--set", "imagePullSecrets[0].name=pull", "--set", "podLabels.team=a"]
        words += ["--set", "env[0].name=OTEL_EXPORTER_OTLP_HEADERS"]
        words += ["--set", "env[0].valueFrom.secretKeyRef.name=collector"]
        words += ["--set", "env[0].valueFrom.secretKeyRef.key=headers"]
        found = objects(rendered(*words))
        template = only(found, "Deployment")["spec"]["template"]
        (container,) = template["spec"]["containers"]
        assert violations(template["spec"]) == []
        assert container["image"] == "moorage@sha256:" + "0" * 64
        assert container["args"][-1] == "--foo=a b"
        *pod, variable = container["env"]
        assert [each["name"] for each in pod] == ["POD_NAMESPACE", "POD_NAME"]
        assert variable["name"] == "OTEL_EXPORTER_OTLP_HEADERS"
        assert variable["valueFrom"]["secretKeyRef"] == {"name": "collector", "key": "headers"}
        assert template["spec"]["imagePullSecrets"] == [{"name": "pull"}]
        assert template["metadata"]["labels"]["team"] == "a"
        monitor = only(found, "ServiceMonitor")["spec"]
        service = only(found, "Service")
        assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        assert [each["port"] for each in monitor["endpoints"]] == ["https"]
        (binding,) = [
            each
            for each in found
            if each["kind"] == "ClusterRoleBinding" and each["metadata"]["name"].endswith("metrics")
        ]
        assert binding["subjects"][0]["name"] == "prometheus"

    def test_the_pod_of_the_test_is_restricted_and_chooses_the_first_profile(self) -> None:
        words = ("--set", "profiles[0].schedulerName=acme", "--show-only")
        done = helm("template", "moorage", str(CHART), *words, "templates/tests/placed.yaml")
        spec = only(objects(done.stdout), "Pod")["spec"]
        assert violations(spec) == []
        assert spec["schedulerName"] == "acme"

    @pytest.mark.parametrize(
        ("certificate", "secret"),
        [
            pytest.param("certificate.secretName=mine", "mine", id="a Secret of the user"),
            pytest.param("certificate.issuer.name=ca", "moorage-certificate", id="cert-manager"),
        ],
    )
    def test_a_certificate_is_served_and_verified(self, certificate: str, secret: str) -> None:
        words = ["--set", certificate, "--set", "metrics.serviceMonitor.enabled=true"]
        found = objects(rendered(*words, "--namespace", "a"))
        spec = only(found, "Deployment")["spec"]["template"]["spec"]
        (volume,) = [each["secret"] for each in spec["volumes"] if "secret" in each]
        assert volume == {"secretName": secret}
        arguments = set(spec["containers"][0]["args"])
        folder = "/etc/moorage-certificate"
        assert f"--tls-cert-file={folder}/tls.crt" in arguments
        assert f"--tls-private-key-file={folder}/tls.key" in arguments
        (endpoint,) = only(found, "ServiceMonitor")["spec"]["endpoints"]
        assert endpoint["tlsConfig"] == {
            "ca": {"secret": {"name": secret, "key": "ca.crt"}},
            "serverName": "moorage.a.svc",
        }
        asked = [each["spec"] for each in found if each["kind"] == "Certificate"]
        issued = {
            "secretName": secret,
            "dnsNames": ["moorage.a.svc"],
            "issuerRef": {"name": "ca"},
        }
        assert asked == ([issued] if "issuer" in certificate else [])

    @pytest.mark.parametrize(
        ("values", "verification"),
        [
            pytest.param((), {"insecureSkipVerify": True}, id="no certificate"),
            pytest.param(
                ("certificate.issuer.name=ca",),
                {
                    "ca": {"secret": {"name": "moorage-certificate", "key": "ca.crt"}},
                    "serverName": "moorage.a.svc",
                },
                id="cert-manager",
            ),
        ],
    )
    def test_a_pod_monitor_reads_the_replicas_and_verifies_their_certificate(
        self, values: tuple[str, ...], verification: dict[str, Any]
    ) -> None:
        values += ("metrics.podMonitor.enabled=true", "metrics.podMonitor.tokenSecret.name=scraper")
        words = [word for value in values for word in ("--set", value)]
        found = objects(rendered(*words, "--namespace", "a"))
        monitor = only(found, "PodMonitor")
        template = only(found, "Deployment")["spec"]["template"]
        labels = template["metadata"]["labels"]
        assert monitor["metadata"]["namespace"] == "a"
        assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
        # The alerts rely on the name of the job.
        assert labels[monitor["spec"]["jobLabel"]] == "moorage"
        assert monitor["spec"]["podMetricsEndpoints"] == [
            {
                "port": "https",
                "scheme": "https",
                "interval": "15s",
                "authorization": {
                    "type": "Bearer",
                    "credentials": {"name": "scraper", "key": "token"},
                },
                "tlsConfig": verification,
            }
        ]
        assert "https" in [each["name"] for each in template["spec"]["containers"][0]["ports"]]

    def test_files_of_a_config_map_are_mounted_and_loaded(self) -> None:
        words = ["--set", "plugins.configMap=rules", "--set", "plugins.load={a.py:A,acme:B}"]
        spec = only(objects(rendered(*words)), "Deployment")["spec"]["template"]["spec"]
        container = spec["containers"][0]
        assert container["args"][-2:] == ["--plugin=/etc/moorage-plugins/a.py:A", "--plugin=acme:B"]
        assert {"name": "plugins", "configMap": {"name": "rules"}} in spec["volumes"]
        mount = {"name": "plugins", "mountPath": "/etc/moorage-plugins", "readOnly": True}
        assert mount in container["volumeMounts"]

    def test_only_pods_of_the_namespace_reach_the_port_unless_others_are_named(self) -> None:
        words = ["--set", "networkPolicy.enabled=true"]
        (rule,) = only(objects(rendered(*words)), "NetworkPolicy")["spec"]["ingress"]
        assert rule == {
            "ports": [{"port": "https", "protocol": "TCP"}],
            "from": [{"podSelector": {}}],
        }
        words += ["--set", "networkPolicy.from[0].ipBlock.cidr=10.0.0.0/8"]
        (rule,) = only(objects(rendered(*words)), "NetworkPolicy")["spec"]["ingress"]
        assert rule["from"] == [{"ipBlock": {"cidr": "10.0.0.0/8"}}]

    def test_what_is_added_to_the_pod_is_there_as_it_was_given(self) -> None:
        words = ["--set", "sidecars[0].name=proxy", "--set", "sidecars[0].image=p:1"]
        words += ["--set", "extraVolumes[0].name=v", "--set", "extraVolumeMounts[0].name=v"]
        words += ["--set", "extraVolumeMounts[0].mountPath=/v"]
        words += ["--set", "affinity.nodeAffinity.x=y"]
        words += ["--set", "topologySpreadConstraints[0].maxSkew=2"]
        spec = only(objects(rendered(*words)), "Deployment")["spec"]["template"]["spec"]
        assert spec["containers"][1] == {"name": "proxy", "image": "p:1"}
        assert spec["containers"][0]["volumeMounts"][-1] == {"name": "v", "mountPath": "/v"}
        assert spec["volumes"][-1] == {"name": "v"}
        assert spec["affinity"] == {"nodeAffinity": {"x": "y"}}
        assert spec["topologySpreadConstraints"] == [{"maxSkew": 2}]

    @pytest.mark.parametrize(
        ("value", "told"),
        [
            pytest.param("mode=third", "at '/mode'", id="no such mode"),
            pytest.param("plugins.load={a.py}", "at '/plugins/load/0'", id="a file without a name"),
            pytest.param(r"plugins.files.a\.txt=x", "'a.txt'", id="a file that is not Python"),
            pytest.param(
                r"plugins.configMap=c,plugins.files.a\.py=x", "not both", id="files from two places"
            ),
            pytest.param(
                "certificate.issuer.kind=Issuer", "at '/certificate/issuer'", id="no name"
            ),
            pytest.param("profile=fast", "at '/profile'", id="no such profile"),
            pytest.param("replicas=-1", "at '/replicas'", id="less than no replica"),
            pytest.param("image.digest=abc", "at '/image/digest'", id="not a digest"),
            pytest.param("env[0].value=x", "at '/env/0'", id="a variable without a name"),
            pytest.param(
                "metrics.podMonitor.enabled=true",
                "metrics.podMonitor.tokenSecret.name",
                id="a PodMonitor without a token",
            ),
            pytest.param(
                "metrics.podMonitor.enabled=true,metrics.serviceMonitor.enabled=true",
                "not both",
                id="metrics read twice",
            ),
            pytest.param("imagen=1", "'imagen' not allowed", id="a value that there is not"),
            pytest.param(
                "priorityClass.value=2000000000", "at '/priorityClass/value'", id="a system's value"
            ),
            pytest.param("metrics.readers[0].kind=Pod", "at '/metrics/readers/0", id="no subject"),
        ],
    )
    def test_a_value_that_cannot_be_is_refused_with_its_place(self, value: str, told: str) -> None:
        done = helm("template", "moorage", str(CHART), "--set", value)
        assert done.returncode != 0
        assert told in done.stderr

    def test_another_release_has_names_of_its_own(self) -> None:
        done = helm("template", "batch", str(CHART), "--namespace", "a")
        names = {each["metadata"]["name"] for each in objects(done.stdout)}
        assert names == {"batch-moorage", "batch-moorage-callers", "batch-moorage-test"}
