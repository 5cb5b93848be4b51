"""By whose configuration an answer is computed here, and which schedulers are refused.

A table of answers stands for the API server and the schedulers.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.base.clock import SystemClock, rfc3339_micro
from moorage.client.http_transport import HttpTransport
from moorage.client.transport import Answer, Call
from moorage.config.load import parse_config
from moorage.config.written import documents
from moorage.service.questions.configuration import ConfigurationAnswer
from tests.cli.conftest import Type, errors

API, SCHEDULER = "https://api", "https://scheduler:10259"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
NAMESPACE = "/api/v1/namespaces/kube-system"
PROXIED = "/api/v1/namespaces/kube-system/pods/https:moorage-0:10259/proxy/moorage/v1/configuration"
SECOND_LEASE = "/apis/coordination.k8s.io/v1/namespaces/moorage/leases/moorage"
SECOND_PROXIED = (
    "/api/v1/namespaces/moorage/pods/https:moorage-0:10259/proxy/moorage/v1/configuration"
)
NOBODY = "no scheduler holds the Lease kube-system/kube-scheduler or moorage/moorage"
PACKED = parse_config(
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    "profiles: [{schedulerName: packed}]\n",
    source="packed",
)
NOT_KNOWN = "error: the configuration of the scheduler is not known: "
REMEDY = "; give it with --config FILE (`moorage config defaults` prints the default one)\n"

Answers = dict[tuple[str, str], Any]


def _pod(scheduler_name: str = "packed") -> Any:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "default", "uid": "u"},
        "spec": {"schedulerName": scheduler_name, "containers": [{"name": "c", "image": "x"}]},
        "status": {"phase": "Pending"},
    }


@pytest.fixture
def answers(bare: Type, monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Return the table of answers, by server and path; anything else is not there."""
    found: Answers = {(API, "/api/v1/pods"): {"items": [_pod()]}}

    async def request(self: HttpTransport, call: Call) -> Answer:
        answer = found.get((self._access.server, call.path))
        if answer is None:
            missing = {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}
            return Answer(404, {}, msgspec.json.encode(missing))
        return Answer(200, {}, msgspec.json.encode(answer))

    monkeypatch.setattr(HttpTransport, "request", request)
    file = Path("kubeconfig")
    file.write_text(
        "current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
        f"clusters: [{{name: c, cluster: {{server: '{API}'}}}}]\nusers: [{{name: u, user: {{}}}}]\n"
    )
    monkeypatch.setenv("KUBECONFIG", str(file))
    return found


def _lease(holder: str, *, age_seconds: int = 1) -> Any:
    renewed = rfc3339_micro(SystemClock().now_ns() - age_seconds * 1_000_000_000)
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}
    return {"spec": spec}


def _now(answer: Any) -> Any:
    """Return an answer; a lease is renewed when the test begins, not when it is collected."""
    return answer() if callable(answer) else answer


def _configuration(cluster: str = "one", plugins: tuple[str, ...] = ()) -> ConfigurationAnswer:
    return ConfigurationAnswer(
        time="",
        scheduling=True,
        cluster=cluster,
        documents=tuple(documents(PACKED)),
        feature_gates="",
        unschedulable_seconds_max=None,
        plugins=plugins,
    )


@pytest.mark.parametrize(
    ("more", "title"),
    [
        pytest.param(
            {LEASE: partial(_lease, "moorage-0_x"), PROXIED: _configuration()},
            "the configuration of the scheduler moorage-0_x",
            id="of the holder of the lease",
        ),
        pytest.param(
            {SECOND_LEASE: partial(_lease, "moorage-0_x"), SECOND_PROXIED: _configuration()},
            "the configuration of the scheduler moorage-0_x",
            id="of the holder of the lease of a second scheduler",
        ),
        pytest.param(
            {},
            f"the default configuration: {NOBODY}",
            id="the default one where no scheduler is known",
        ),
        pytest.param(
            {LEASE: partial(_lease, "moorage-0_x", age_seconds=60)},
            f"the default configuration: {NOBODY}",
            id="the default one where the lease has expired",
        ),
    ],
)
def test_an_answer_says_by_whose_configuration_it_was_computed(
    more: dict[str, Any], title: str, bare: Type, answers: Answers
) -> None:
    answers.update({(API, path): _now(answer) for path, answer in more.items()})
    name = "packed" if "moorage-0_x" in title else "default-scheduler"
    answers[API, "/api/v1/pods"] = {"items": [_pod(name)]}
    result = bare("explain", "pod", "a", "-o", "json")
    assert result.exit_code == 0, result.output
    answer = msgspec.json.decode(result.stdout)
    assert answer["source"].endswith(f"has just started. By {title}.")
    assert answer["where"] != "unserved"


@pytest.mark.parametrize("words", [("explain", "pod", "a"), ("explain", "pod", "a", "--thorough")])
def test_a_pod_of_a_scheduler_that_is_not_known_is_not_explained(
    words: tuple[str, ...], bare: Type, answers: Answers
) -> None:
    """It said that nobody serves "packed" of the default configuration."""
    result = bare(*words)
    fault = f"pod default/a has schedulerName packed, and {NOBODY}"
    assert (result.exit_code, errors(result.stderr)) == (1, f"{NOT_KNOWN}{fault}{REMEDY}")


@pytest.mark.parametrize(
    ("words", "option"),
    [
        pytest.param(("what-if", "--add", "1xcpu=1"), "--running-config FILE", id="what-if"),
        pytest.param(("capacity",), "--running-config FILE", id="capacity"),
        pytest.param(("explain", "object", "namespace/default"), "--config FILE", id="explain"),
    ],
)
def test_pods_of_a_scheduler_that_is_not_known_are_named(
    words: tuple[str, ...], option: str, bare: Type, answers: Answers
) -> None:
    result = bare(*words)
    note = f"note: pods of schedulerName packed get no node in the answer, because {NOBODY}; give"
    assert f"{note} the configuration of their scheduler with {option}" in _plain(result.stderr)


def _plain(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        pytest.param(
            {LEASE: partial(_lease, "control-plane_x")},
            "control-plane_x holds the Lease kube-system/kube-scheduler, and its pod answers 404",
            id="the holder cannot be asked",
        ),
        pytest.param(
            {SECOND_LEASE: partial(_lease, "laptop_x")},
            "laptop_x holds the Lease moorage/moorage, and its pod answers 404",
            id="the holder of the lease of a second scheduler cannot be asked",
        ),
    ],
)
def test_without_the_configuration_nothing_is_computed(
    more: dict[str, Any], fault: str, bare: Type, answers: Answers
) -> None:
    answers.update({(API, path): _now(answer) for path, answer in more.items()})
    result = bare("explain", "pod", "a", "--thorough")
    assert (result.exit_code, errors(result.stderr)) == (1, f"{NOT_KNOWN}{fault}{REMEDY}")


def test_code_that_a_scheduler_elsewhere_names_is_not_run(bare: Type, answers: Answers) -> None:
    answers[API, LEASE] = _lease("moorage-0_x")
    answers[API, PROXIED] = _configuration(plugins=("mine.py:Mine",))
    result = bare("explain", "pod", "a")
    assert result.exit_code == 1
    assert "runs plugins from outside (mine.py:Mine); give it with --config FILE and --plugin" in (
        result.stderr
    )


@pytest.mark.parametrize(
    ("theirs", "ours", "refused"),
    [
        pytest.param("one", "two", True, id="of another cluster"),
        pytest.param("", "two", True, id="that does not say which cluster it schedules"),
        pytest.param("one", "one", False, id="of the same cluster, which is asked"),
    ],
)
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("what-if", "--cordon", "n"), id="what-if"),
        pytest.param(("capacity",), id="capacity"),
        pytest.param(("explain", "pod", "a", "--thorough"), id="explain --thorough"),
        pytest.param(("explain", "pod", "a", "--context", "c"), id="explain with a cluster"),
        pytest.param(("explain", "object", "deployment/a"), id="explain object"),
        pytest.param(("queue", "--context", "c"), id="queue with a cluster"),
    ],
)
def test_a_scheduler_at_an_address(
    words: tuple[str, ...],
    theirs: str,
    ours: str,
    refused: bool,
    bare: Type,
    answers: Answers,
) -> None:
    answers[SCHEDULER, "/moorage/v1/configuration"] = _configuration(theirs)
    answers[API, NAMESPACE] = {"metadata": {"uid": ours}}
    result = bare(*words, "--scheduler", SCHEDULER)
    told = "schedules another cluster than the objects are of" in result.stderr
    assert told is refused, result.stderr
    assert (result.exit_code == 2) is refused
