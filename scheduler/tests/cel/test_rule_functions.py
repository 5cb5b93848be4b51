"""The functions Kubernetes adds to CEL, in rules."""

from __future__ import annotations

import pytest

from sandbox.tests.rules.builders import COUNT, TEXT, TEXTS, broken, obj

SPEC = {"text": TEXT, "texts": TEXTS, "counts": {"type": "array", "items": COUNT}}
VALUE = {"text": "abc 123 def 456", "texts": ["a", "b", "c"], "counts": [3, 1, 2]}


@pytest.mark.parametrize(
    "text",
    [
        # Those of the libraries' own documentation, over a value.
        "self.text.find('[0-9]+') == '123'",
        "self.text.find('xyz') == ''",
        "self.text.findAll('[0-9]+') == ['123', '456']",
        "!self.text.find('^([^ ]+)').endsWith('kubernetes.io')",
        "sets.contains(self.texts, ['b', 'a']) && !sets.contains(self.texts, ['d'])",
        "sets.contains([], []) && sets.contains([{'a': [1]}], [{'a': [1]}])",
        "sets.equivalent([1, 1, 2], [2, 1]) && sets.equivalent([1], [1.0])",
        "sets.intersects(self.counts, [2]) && !sets.intersects([1], [true])",
        "isIP('127.0.0.1') && isIP('::1') && !isIP('127.0.0.256') && !isIP(':::1')",
        "!isIP('::ffff:1.2.3.4') && !isIP('fe80::1%eth0') && !isIP('01.2.3.4') && !isIP('')",
        "isCIDR('192.168.0.0/16') && isCIDR('::1/128') && !isCIDR('192.168.0.0/33')",
        "!isCIDR('192.168.0.0') && !isCIDR('192.168.0.0/255.255.0.0') && !isCIDR('1.2.3.4/08')",
        "isQuantity('1.3Gi') && !isQuantity('1,3K')",
        "quantity('500000G').isInteger() && quantity('50k').asInteger() == 50000",
        "quantity('1.5Gi').isGreaterThan(quantity('1.5G')) && quantity('1k') == quantity('1000')",
        "quantity('50k').add(20).sub(quantity('20')).compareTo(quantity('50000')) == 0",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && isSemver('v1', true)",
        "'a,b'.split(',').map(x, x.upperAscii()).join('-') == 'A-B'",
        "'%s has %d'.format([self.texts[0], self.counts[0]]) == 'a has 3'",
    ],
)
def test_each_cel_function_gives_the_documented_result(text: str):
    assert broken(obj(text, **SPEC), VALUE) == []
    assert broken(obj(f"!({text})", **SPEC), VALUE) != []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("self.text.find('(') == ''", "Illegal regex: error parsing regexp: missing ): ("),
        ("quantity(self.text).isInteger()", "quantities must match the regular expression"),
    ],
)
def test_a_failing_cel_function_is_reported(text: str, why: str):
    [message] = broken(obj(text, **SPEC), VALUE)
    assert message.startswith(f'spec: Invalid value: "object": {why}')
