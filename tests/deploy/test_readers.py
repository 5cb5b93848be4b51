"""Whom the chart binds to the rights to ask, and where; `test_question_rights` uses the rights."""

from __future__ import annotations

import pytest

from tests.deploy.chart import CHART, helm, objects, rendered

pytestmark = [pytest.mark.slow, pytest.mark.kubectl]


def test_readers_are_bound_to_the_tunnel_in_the_namespace_of_the_release_only() -> None:
    words = ["--set", "questions.readers[0].kind=Group", "--set", "questions.readers[0].name=g"]
    found = objects(rendered(*words, "--namespace", "a"))
    roles = {
        each["metadata"]["name"]: each["rules"] for each in found if each["kind"] == "ClusterRole"
    }
    bound = [
        (each["metadata"].get("namespace", ""), roles[each["roleRef"]["name"]])
        for each in found
        if each.get("subjects", [{}])[0].get("name") == "g"
    ]
    paths = {"nonResourceURLs": ["/moorage/v1/*"], "verbs": ["get", "post"]}
    assert sorted(bound) == [("", [paths]), ("a", roles["moorage-questions"])]
    assert paths in roles["moorage-questions"]


def test_readers_may_read_a_lease_in_another_namespace_and_nothing_else_there() -> None:
    words = ["--set", "questions.readers[0].kind=Group", "--set", "questions.readers[0].name=g"]
    words += ["--set", "lease.namespace=b", "--namespace", "a"]
    found = objects(rendered(*words))
    (role,) = [
        each
        for each in found
        if each["kind"] == "Role"
        and each["metadata"]["namespace"] == "b"
        and each["metadata"]["name"].endswith("lease-reader")
    ]
    assert [(each["resources"], each["verbs"]) for each in role["rules"]] == [(["leases"], ["get"])]
    others = [
        each["roleRef"]
        for each in found
        if each["kind"] == "RoleBinding"
        and each["metadata"]["namespace"] == "b"
        and each["subjects"][0]["name"] == "g"
    ]
    assert [each["name"] for each in others] == ["moorage-lease-reader"]


def test_the_role_of_questions_is_offered_without_readers() -> None:
    found = objects(rendered("--set", "questions.clusterRole=true"))
    names = {
        each["metadata"]["name"]: each["kind"]
        for each in found
        if "questions" in each["metadata"]["name"]
    }
    assert names == {"moorage-questions": "ClusterRole"}


@pytest.mark.parametrize(
    ("values", "line"),
    [
        pytest.param((), "Only administrators may ask it why a pod waits", id="nobody"),
        pytest.param(
            ("--set", "questions.clusterRole=true"),
            "once they are bound to the ClusterRole moorage-questions.",
            id="a role without readers",
        ),
        pytest.param(
            ("--set", "questions.readers[0].kind=Group,questions.readers[0].name=g"),
            "Ask it why a pod waits, as one of questions.readers",
            id="readers",
        ),
    ],
)
def test_the_notes_say_who_may_ask(values: tuple[str, ...], line: str) -> None:
    done = helm("install", "moorage", str(CHART), "--dry-run=client", *values)
    assert done.returncode == 0, done.stderr
    assert line in done.stdout.partition("\nNOTES:\n")[2]
