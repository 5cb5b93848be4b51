"""The page of a release, as the chart renders it; `test_release` runs it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.deploy.chart import CHART, helm, objects, rendered
from tests.deploy.pod_security import violations

pytestmark = [pytest.mark.slow, pytest.mark.kubectl]

NAMESPACE = "scheduling"


def of_page(*values: str) -> dict[str, dict[str, Any]]:
    """Return the objects of the page by their kinds."""
    words = [word for value in ("page.enabled=true", *values) for word in ("--set", value)]
    found = objects(rendered(*words, "--namespace", NAMESPACE))
    return {each["kind"]: each for each in found if each["metadata"]["name"] == "moorage-page"}


def test_without_the_value_there_is_no_page() -> None:
    names = {each["metadata"]["name"] for each in objects(rendered("--namespace", NAMESPACE))}
    assert "moorage-page" not in names


def test_the_page_has_no_rights_and_asks_the_holder_of_the_lease() -> None:
    page = of_page()
    assert set(page) == {"ServiceAccount", "Deployment", "Service"}
    spec = page["Deployment"]["spec"]["template"]["spec"]
    assert violations(spec) == []
    assert spec["serviceAccountName"] == "moorage-page"
    assert spec["containers"][0]["args"] == [
        *("dashboard", "--login=token", "--address=0.0.0.0:8443"),
        f"--lease={NAMESPACE}/moorage",
    ]
    subjects = [
        subject["name"]
        for each in objects(rendered("--set", "page.enabled=true", "--namespace", NAMESPACE))
        for subject in each.get("subjects", ())
    ]
    assert subjects
    assert "moorage-page" not in subjects


def test_the_only_scheduler_holds_the_lease_of_kube_scheduler() -> None:
    (container,) = of_page("mode=only")["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["args"][-1] == "--lease=kube-system/kube-scheduler"


def test_the_service_leads_to_the_page_and_that_of_the_scheduler_does_not() -> None:
    page = of_page()
    labels = page["Deployment"]["spec"]["template"]["metadata"]["labels"].items()
    assert page["Service"]["spec"]["selector"].items() <= labels
    (service,) = (
        each for each in objects(rendered("--namespace", NAMESPACE)) if each["kind"] == "Service"
    )
    assert not service["spec"]["selector"].items() <= labels


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        pytest.param("page.certificate.secretName=mine", "mine", id="a Secret of the user"),
        pytest.param("page.certificate.issuer.name=ca", "moorage-page-certificate", id="issuer"),
    ],
)
def test_a_certificate_is_presented(value: str, secret: str) -> None:
    page = of_page(value, "page.ingress.host=page.example")
    spec = page["Deployment"]["spec"]["template"]["spec"]
    assert [each["secret"] for each in spec["volumes"] if "secret" in each] == [
        {"secretName": secret}
    ]
    assert spec["containers"][0]["args"][-2:] == [
        "--tls-cert-file=/etc/moorage-certificate/tls.crt",
        "--tls-private-key-file=/etc/moorage-certificate/tls.key",
    ]
    if "issuer" in value:
        assert page["Certificate"]["spec"] == {
            "secretName": secret,
            "dnsNames": [f"moorage-page.{NAMESPACE}.svc", "page.example"],
            "issuerRef": {"name": "ca"},
        }


def test_an_ingress_leads_to_the_service() -> None:
    values = ("enabled=true", "className=nginx", "host=page.example", "tlsSecretName=t")
    annotation = r"page.ingress.annotations.nginx\.ingress\.kubernetes\.io/backend-protocol=HTTPS"
    ingress = of_page(*(f"page.ingress.{each}" for each in values), annotation)["Ingress"]
    assert ingress["metadata"]["annotations"] == {
        "nginx.ingress.kubernetes.io/backend-protocol": "HTTPS"
    }
    backend = {"service": {"name": "moorage-page", "port": {"name": "https"}}}
    assert ingress["spec"] == {
        "ingressClassName": "nginx",
        "tls": [{"hosts": ["page.example"], "secretName": "t"}],
        "rules": [
            {
                "host": "page.example",
                "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]},
            }
        ],
    }


@pytest.mark.parametrize(
    ("values", "lines"),
    [
        pytest.param(
            (),
            (
                f"  kubectl port-forward service/moorage-page 8443:443 -n {NAMESPACE}",
                "  https://localhost:8443",
            ),
            id="a tunnel to the Service",
        ),
        pytest.param(
            ("page.ingress.enabled=true", "page.ingress.host=moorage.example"),
            ("  https://moorage.example",),
            id="the name of the Ingress",
        ),
    ],
)
def test_the_notes_say_where_the_page_is(values: tuple[str, ...], lines: tuple[str, ...]) -> None:
    words = [word for value in ("page.enabled=true", *values) for word in ("--set", value)]
    words += ["--namespace", NAMESPACE, "--dry-run=client"]
    notes = helm("install", "moorage", str(CHART), *words).stdout.partition("\nNOTES:\n")[2]
    first = "Look at its page, and log in with a token of one of questions.readers:"
    begin = notes.splitlines().index(first)
    assert tuple(notes.splitlines()[begin + 1 :][: len(lines)]) == lines


def test_an_ingress_without_a_name_is_refused() -> None:
    words = ["--set", "page.enabled=true", "--set", "page.ingress.enabled=true"]
    done = helm("template", "moorage", str(CHART), *words)
    assert done.returncode != 0
    assert "page.ingress.host: the name of the page" in done.stderr
