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
        "isIP('127.0.0.1') && isIP('::1') && !isIP('127.0.0.256') && !isIP(':::1')",
        "!isIP('::ffff:1.2.3.4') && !isIP('fe80::1%eth0') && !isIP('01.2.3.4') && !isIP('')",
        "ip('127.0.0.1').family() == 4 && ip('::1').family() == 6",
        "ip.isCanonical('2001:db8::abcd') && !ip.isCanonical('2001:DB8::ABCD')",
        "ip('127.0.0.1').isLoopback() && ip('0.0.0.0').isUnspecified()",
        "ip('224.0.0.1').isLinkLocalMulticast() && !ip('224.0.1.1').isLinkLocalMulticast()",
        "ip('ff02::1').isLinkLocalMulticast() && !ip('ff05::1').isLinkLocalMulticast()",
        "ip('169.254.169.254').isLinkLocalUnicast() && ip('fe80::1').isLinkLocalUnicast()",
        "ip('192.168.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()",
        "ip('2001:db8::1') == ip('2001:DB8:0::1') && ip('1.2.3.4') != ip('1.2.3.5')",
        "string(ip('2001:DB8::1')) == '2001:db8::1' && string(self.counts[0]) == '3'",
        "cel.bind(a, ip('1.2.3.4'), string(a) == '1.2.3.4')",
        "isCIDR('192.168.0.0/16') && isCIDR('::1/128') && !isCIDR('192.168.0.0/33')",
        "!isCIDR('192.168.0.0') && !isCIDR('192.168.0.0/255.255.0.0') && !isCIDR('1.2.3.4/08')",
        "cidr('192.168.0.0/24').containsIP(ip('192.168.0.1'))",
        "!cidr('192.168.0.0/24').containsIP('192.168.1.1')",
        "cidr('192.168.0.0/16').containsCIDR(cidr('192.168.10.0/24'))",
        "!cidr('192.168.1.0/24').containsCIDR('192.168.0.0/16')",
        "!cidr('192.168.0.0/16').containsCIDR('::/0')",
        "cidr('192.168.1.5/24').ip() == ip('192.168.1.5')",
        "string(cidr('192.168.1.5/24').masked()) == '192.168.1.0/24'",
        "cidr('192.168.0.0/24') == cidr('192.168.0.0/24').masked()",
        "cidr('192.168.0.0/16').prefixLength() == 16",
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
        ("self.text.find('(') == ''", "Illegal regex: error parsing regexp: missing ): ("),
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
        ("ip(self.text).family() == 4", 'IP Address "abc 123 def 456" parse error during'),
        ("cidr('::1').prefixLength() == 1", "network address parse error during conversion from"),
        ("cidr('::/1').family() == 6", "'no such overload': call arguments did not match"),
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
