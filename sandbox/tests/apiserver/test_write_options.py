"""Parameters of writes with values that no call has, in the words of kube-apiserver.

Expected texts follow kubernetes v1.36 apimachinery pkg/apis/meta/v1/validation.
"""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.tests.apiserver.harness import (
    CONFIG_MAPS,
    MERGE,
    PODS,
    Cluster,
    binding,
    config_map,
    failure,
    pod,
)

DRY_RUN = ("dryRun", 'Unsupported value: ["Some"]: supported values: "All"')
FIELDS = (
    "fieldValidation",
    'Unsupported value: "Loud": supported values: "", "Ignore", "Strict", "Warn"',
)
LONG = ("fieldManager", "Too long: may not be more than 128 bytes")
UNPRINTABLE = [
    (
        "fieldManager",
        f'Invalid value: "é\\ny\u200b": invalid character {shown}',
    )
    for shown in ("U+000A (at position 2)", "U+200B (at position 4)")
]
NO_FORCE = ("force", "Forbidden: may not be specified for non-apply patch")
NAMELESS = ("fieldManager", "Required value: is required for apply patch")
SOME = {"dryRun": "Some"}
LOUD = {"fieldValidation": "Loud"}
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/none"
EVICTION = {"metadata": {"name": "none"}}
APPLY = "application/apply-patch+yaml"


def refusal(options: str, *errors: tuple[str, str]) -> Any:
    types = {"Un": "FieldValueNotSupported", "To": "FieldValueTooLong"}
    types |= {"In": "FieldValueInvalid", "Fo": "FieldValueForbidden", "Re": "FieldValueRequired"}
    causes = [
        {"reason": types[body[:2]], "message": body, "field": field} for field, body in errors
    ]
    texts = [f"{field}: {body}" for field, body in errors]
    shown = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = {"group": "meta.k8s.io", "kind": options, "causes": causes}
    return failure(422, "Invalid", f'{options}.meta.k8s.io "" is invalid: {shown}', details)


@pytest.mark.parametrize(
    ("method", "path", "body", "query", "expected"),
    [
        pytest.param(
            "POST",
            CONFIG_MAPS,
            config_map(),
            SOME,
            refusal("CreateOptions", DRY_RUN),
            id="a create",
        ),
        pytest.param(
            "POST",
            CONFIG_MAPS,
            config_map(),
            SOME | LOUD,
            refusal("CreateOptions", DRY_RUN, FIELDS),
            id="all errors of a create",
        ),
        pytest.param(
            "POST",
            CONFIG_MAPS,
            b"[",
            {"fieldManager": "x" * 129} | LOUD,
            refusal("CreateOptions", LONG, FIELDS),
            id="a long manager of a create, before its body",
        ),
        pytest.param(
            "POST",
            CONFIG_MAPS,
            config_map(),
            {"fieldManager": "é\ny\u200b"},
            refusal("CreateOptions", *UNPRINTABLE),
            id="a manager that cannot be printed",
        ),
        pytest.param(
            "PUT",
            f"{CONFIG_MAPS}/none",
            config_map(),
            {"fieldManager": "é\ny\u200b"},
            refusal("UpdateOptions", *UNPRINTABLE),
            id="a manager of an update that cannot be printed",
        ),
        pytest.param(
            "POST",
            f"{PODS}/none/eviction",
            EVICTION,
            {"fieldManager": "x" * 129},
            refusal("CreateOptions", LONG),
            id="a long manager of an eviction",
        ),
        pytest.param(
            "POST",
            f"{PODS}/none/binding",
            binding("none"),
            SOME,
            refusal("CreateOptions", DRY_RUN),
            id="a binding",
        ),
        pytest.param(
            "POST",
            f"{PODS}/none/eviction",
            EVICTION,
            SOME,
            refusal("CreateOptions", DRY_RUN),
            id="an eviction",
        ),
        pytest.param(
            "POST",
            f"{PODS}/none/eviction",
            EVICTION | {"deleteOptions": {"dryRun": ["Some"]}},
            {},
            refusal("DeleteOptions", DRY_RUN),
            id="the body of an eviction",
        ),
        pytest.param(
            "PUT",
            f"{CONFIG_MAPS}/none",
            b"[",
            {"fieldManager": "x" * 129} | SOME | LOUD,
            refusal("UpdateOptions", LONG, DRY_RUN, FIELDS),
            id="all errors of an update, before its body and its object",
        ),
        pytest.param(
            "PUT",
            f"{DEPLOYMENT}/scale",
            {},
            LOUD,
            refusal("UpdateOptions", FIELDS),
            id="an update of a scale",
        ),
        pytest.param(
            "PATCH",
            f"{CONFIG_MAPS}/none",
            {},
            {"force": "true"} | LOUD,
            refusal("PatchOptions", NO_FORCE, FIELDS),
            id="a patch",
        ),
        pytest.param(
            "PATCH",
            f"{DEPLOYMENT}/scale",
            {},
            SOME,
            refusal("PatchOptions", DRY_RUN),
            id="a patch of a scale",
        ),
        pytest.param(
            "DELETE",
            f"{CONFIG_MAPS}/none",
            None,
            SOME,
            refusal("DeleteOptions", DRY_RUN),
            id="a delete",
        ),
        pytest.param(
            "DELETE",
            CONFIG_MAPS,
            {"dryRun": ["Some"]},
            {},
            refusal("DeleteOptions", DRY_RUN),
            id="the body of a delete of all",
        ),
    ],
)
async def test_invalid_options_are_refused(method, path, body, query, expected):
    form = {"content_type": MERGE} if method == "PATCH" else {}
    assert await Cluster().call(method, path, body, query=query, **form) == expected


async def test_an_apply_names_its_manager_first():
    found = await Cluster().call(
        "PATCH", f"{CONFIG_MAPS}/a", config_map(), query=SOME, content_type=APPLY
    )
    assert found == refusal("PatchOptions", NAMELESS, DRY_RUN)


async def test_invalid_options_change_nothing():
    cluster = Cluster()
    await cluster.ok("POST", CONFIG_MAPS, config_map("a"))
    version = cluster.server.store.version
    for method, path in (("POST", PODS), ("PUT", f"{CONFIG_MAPS}/a"), ("DELETE", CONFIG_MAPS)):
        body = {"POST": pod(), "PUT": config_map("a", k="v"), "DELETE": None}[method]
        assert (await cluster.call(method, path, body, query=SOME))[0] == 422
    assert cluster.server.store.version == version


async def test_an_update_may_be_told_to_force():
    """UpdateOptions have no such field, and unknown parameters are ignored."""
    cluster = Cluster()
    await cluster.ok("POST", CONFIG_MAPS, config_map("a"))
    await cluster.ok("PUT", f"{CONFIG_MAPS}/a", config_map("a", k="v"), query={"force": "true"})
