"""What resource names mean, and which names are valid."""

import pytest

from moorage.api import names

TABLE = [
    # name, native, extended, scalar, kept by the scheduler
    pytest.param("cpu", True, False, False, True, id="cpu"),
    pytest.param("memory", True, False, False, True, id="memory"),
    pytest.param("ephemeral-storage", True, False, False, True, id="local disk"),
    pytest.param("pods", True, False, False, True, id="a node's limit of pods"),
    pytest.param("foo", True, False, False, False, id="an unknown name without slash is dropped"),
    pytest.param("example.com/gpu", False, True, True, True, id="an extended resource"),
    pytest.param("hugepages-2Mi", True, False, True, True, id="huge pages"),
    pytest.param("attachable-volumes-csi-x", True, False, True, True, id="a volume limit"),
    pytest.param("kubernetes.io/batch", True, False, True, True, id="the domain of Kubernetes"),
    pytest.param("x.kubernetes.io/y", True, False, True, True, id="below the domain of Kubernetes"),
    pytest.param("requests.example.com/gpu", False, False, False, False, id="a quota's name"),
    pytest.param("example.com/", False, False, False, False, id="no name after the slash"),
    pytest.param("Example.com/gpu", False, False, False, False, id="a domain in capitals"),
]


@pytest.mark.parametrize(("name", "native", "extended", "scalar", "kept"), TABLE)
def test_resource_names(name, native, extended, scalar, kept):
    assert (
        names.is_native_resource(name),
        names.is_extended_resource(name),
        names.is_scalar_resource(name),
        names.is_scheduling_resource(name),
    ) == (native, extended, scalar, kept)


@pytest.mark.parametrize(
    ("check", "valid", "invalid"),
    [
        pytest.param(
            names.qualified_name_faults,
            ["a", "A.b_c-d", "example.com/a", "x" * 63, f"{'a' * 60}.com/x"],
            ["", "-a", "a-", "a b", "/a", "a/", "a/b/c", "x" * 64, "UP.com/a", f"{'a' * 254}/x"],
            id="qualified names",
        ),
        pytest.param(
            names.label_value_faults,
            ["", "a", "A_b.c-9", "x" * 63],
            ["-a", "a-", "a/b", "a b", "x" * 64, "a\n"],
            id="label values",
        ),
        pytest.param(
            names.dns_label_faults,
            ["a", "a-b", "0", "x" * 63],
            ["", "A", "a.b", "-a", "a-", "x" * 64, "a\n"],
            id="DNS labels",
        ),
        pytest.param(
            names.dns_subdomain_faults,
            ["a", "a.b-c.d", "x" * 253],
            ["", "A", "a..b", ".a", "a.", "a_b", "x" * 254],
            id="DNS subdomains",
        ),
    ],
)
def test_valid_and_invalid_names(check, valid, invalid):
    assert [name for name in valid if check(name)] == []
    assert [name for name in invalid if not check(name)] == []


def test_a_fault_is_told_in_the_words_of_the_api_server():
    assert names.label_value_faults("a b") == [
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
        "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
        "'my_value',  or '12345', regex used for validation is "
        "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    ]
    assert names.dns_label_faults("x" * 64) == ["must be no more than 63 characters"]
    assert names.qualified_name_faults("/a") == ["prefix part must be non-empty"]
