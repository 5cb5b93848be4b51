"""The functions Kubernetes adds to CEL, in rules."""

from __future__ import annotations

import pytest

from tests.apiserver.custom_rules.builders import COUNT, TEXT, TEXTS, broken, obj

SPEC = {"text": TEXT, "texts": TEXTS, "counts": {"type": "array", "items": COUNT}}
VALUE = {"text": "abc 123 def 456", "texts": ["a", "b", "c"], "counts": [3, 1, 2]}


@pytest.mark.parametrize(
    "text",
    [
        # Those of the libraries' own documentation, over a value.
        "self.text.find('[0-9]+') == '123'",
        "self.text.find('xyz') == ''",
        "self.text.findAll('[0-9]+') == ['123', '456']",
        "self.text.findAll('[0-9]', 2) == ['1', '2']",
        "self.text.findAll('[0-9]', 0) == []",
        "!self.text.find('^([^ ]+)').endsWith('kubernetes.io')",
        "self.texts.isSorted() && !self.counts.isSorted()",
        "[].isSorted() && [1].isSorted() && [1, 1.5, 2].isSorted()",
        "self.counts.sum() == 6 && [1.5, 0.5].sum() == 2.0 && [].sum() == 0",
        "self.counts.min() == 1 && self.counts.max() == 3",
        "self.texts.min() == 'a' && [2, 2.5].max() == 2.5 && [false, true].max()",
        "sets.contains(self.texts, ['b', 'a']) && !sets.contains(self.texts, ['d'])",
        "sets.contains([], []) && sets.contains([{'a': [1]}], [{'a': [1]}])",
        "sets.equivalent([1, 1, 2], [2, 1]) && sets.equivalent([1], [1.0])",
        "sets.intersects(self.counts, [2]) && !sets.intersects([1], [true])",
        "isURL('https://example.com:80/path?k=v#x') && isURL('/absolute') && isURL('mailto:a@b')",
        "!isURL('https://a:b/') && !isURL('../relative') && !isURL('')",
        "!isURL('https://exa mple.com') && !isURL('https://example.com/%zz')",
        "url('HTTPS://example.com/').getScheme() == 'https' && url('/path').getScheme() == ''",
        "url('https://u:p@example.com:80/').getHost() == 'example.com:80'",
        "url('https://[::1]:80/').getHostname() == '::1' && url('/path').getHostname() == ''",
        "url('https://example.com:80/').getPort() == '80' && url('https://a/').getPort() == ''",
        "url('https://example.com/with space/').getEscapedPath() == '/with%20space/'",
        "url('https://example.com/a%2Fb').getEscapedPath() == '/a%2Fb'",
        "url('https://example.com/p?k=1&k=2&l=').getQuery() == {'k': ['1', '2'], 'l': ['']}",
        "url('https://example.com/') == url('HTTPS://example.com/')",
        "isQuantity('1.3Gi') && !isQuantity('1,3K')",
        "quantity('500000G').isInteger() && quantity('50k').asInteger() == 50000",
        "quantity('1.5Gi').isGreaterThan(quantity('1.5G')) && quantity('1k') == quantity('1000')",
        "quantity('50k').add(20).sub(quantity('20')).compareTo(quantity('50000')) == 0",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && isSemver('v1', true)",
        "'a,b'.split(',').map(x, x.upperAscii()).join('-') == 'A-B'",
        "'%s has %d'.format([self.texts[0], self.counts[0]]) == 'a has 3'",
    ],
)
def test_a_function_says(text: str):
    assert broken(obj(text, **SPEC), VALUE) == []
    assert broken(obj(f"!({text})", **SPEC), VALUE) != []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[].max() == self.counts[0]", "max called on empty list evaluating rule"),
        ("[].min() == self.counts[0]", "min called on empty list evaluating rule"),
        ("self.text.find('(') == ''", "Illegal regex: missing ), unterminated subpattern at "),
        (
            "url('no url').getHost() == ''",
            'URL parse error during conversion from string: parse "no url" evaluating rule',
        ),
        (
            "quantity(self.text).isInteger()",
            "quantities must match the regular expression",
        ),
        (
            "self.texts.sum() == self.counts.sum()",
            "'no such overload': call arguments did not match",
        ),
        ("[dyn(1), 'a'].isSorted()", "'no such overload': call arguments did not match"),
    ],
)
def test_a_function_fails(text: str, why: str):
    [message] = broken(obj(text, **SPEC), VALUE)
    assert message.startswith(f'spec: Invalid value: "object": {why}')


def test_functions_over_lists_in_loops_are_costly():
    schema = obj("self.counts.all(x, sets.contains(self.counts, [x]))", **SPEC)
    assert broken(schema, {"counts": list(range(1000))}) == []
    [message] = broken(schema, {"counts": list(range(2000))})
    assert "running out of cost budget" in message
