"""Quantities: value, rounding and canonical spelling, against exact fractions."""

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from moorage.api.quantity import INT64_MAX, NANO, canonical, milli, parse_quantity, value

FACTORS = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
SUFFIXES = st.one_of(
    st.sampled_from(sorted(FACTORS)),
    st.builds("{}{}".format, st.sampled_from("eE"), st.integers(-25, 25)),
    st.builds("e+{}".format, st.integers(0, 25)),
)
NUMBERS = st.from_regex(r"[0-9]{1,20}(\.[0-9]{0,12})?|\.[0-9]{1,12}", fullmatch=True)


def _exact(sign: str, number: str, suffix: str) -> Fraction:
    whole, _, fraction = number.partition(".")
    size = Fraction(int(whole + fraction or "0"), 10 ** len(fraction))
    factor = FACTORS.get(suffix)
    if factor is None:
        factor = Fraction(10) ** int(suffix[1:])
    return -size * factor if sign == "-" else size * factor


def _up(number: Fraction) -> int:
    return -(-number.numerator // number.denominator)


@given(sign=st.sampled_from(["", "+", "-"]), number=NUMBERS, suffix=SUFFIXES)
@example(sign="-", number="0.1", suffix="n")
@example(sign="", number="9223372036854775807", suffix="")
def test_value_is_the_exact_one_rounded_away_from_zero(sign, number, suffix):
    exact = _exact(sign, number, suffix)
    size = min(_up(abs(exact) * NANO), INT64_MAX * NANO)
    assert parse_quantity(f"{sign}{number}{suffix}") == (-size if exact < 0 else size)


@given(sign=st.sampled_from(["", "-"]), number=NUMBERS, suffix=SUFFIXES)
def test_the_canonical_spelling_has_the_same_value_and_is_stable(sign, number, suffix):
    text = f"{sign}{number}{suffix}"
    spelled = canonical(text)
    assert parse_quantity(spelled) == parse_quantity(text)
    assert canonical(spelled) == spelled


@given(st.integers(-(10**30), 10**30))
def test_units_round_up_and_stay_within_int64(nano):
    for unit, divisor in ((milli, 10**6), (value, NANO)):
        expected = _up(Fraction(nano, divisor))
        assert unit(nano) == max(-INT64_MAX, min(expected, INT64_MAX))


@given(st.integers(-(2**53), 2**53) | st.floats(-1e12, 1e12))
def test_a_json_number_means_what_its_text_means(number):
    assert parse_quantity(number) == parse_quantity(str(number))


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        pytest.param("0.5", "500m", id="half a unit is shown in milli"),
        pytest.param("1024Mi", "1Gi", id="whole multiples of 1024 move up"),
        pytest.param("1.5Gi", "1536Mi", id="a broken binary number moves down"),
        pytest.param("0.1Ki", "102400m", id="a binary number that is not whole turns decimal"),
        pytest.param("0.5Mi", "512Ki", id="half a mebibyte"),
        pytest.param("1023Ki", "1023Ki", id="nothing to move"),
        pytest.param("-2048Ki", "-2Mi", id="negative"),
        pytest.param("1000000", "1M", id="plain numbers take decimal suffixes"),
        pytest.param("1500", "1500", id="only whole thousands move up"),
        pytest.param("1e3", "1e3", id="an exponent stays an exponent"),
        pytest.param("12E2", "1200", id="exponents are multiples of three"),
        pytest.param("0.00000000001", "1n", id="below nano rounds up"),
        pytest.param("000", "0", id="zero"),
        pytest.param("0Gi", "0", id="zero has no suffix"),
        pytest.param(" 5 ", "5", id="blanks around are ignored"),
        pytest.param(1.5, "1500m", id="a JSON number"),
        pytest.param("9999999999Gi", "9223372036854775807", id="binary is capped at int64"),
        pytest.param(99999999999999999999, "99999999999999999999", id="a number beyond int64"),
        pytest.param("-100000000000000000000", "-100E", id="a round number beyond int64"),
        pytest.param("1e25", "10e24", id="an exponent beyond int64"),
        pytest.param("1.234", "1.234", id="three places stay as they are"),
        pytest.param("1.500", "1.500", id="also if the last are zeros"),
        pytest.param("1.000", "1", id="but not if all are zeros"),
        pytest.param("0.123", "123m", id="nor without a whole part"),
    ],
)
def test_canonical_spelling(text, spelled):
    assert canonical(text) == spelled


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "quantities must match", id="empty"),
        pytest.param("aoeu", "quantities must match", id="a word"),
        pytest.param(".", "quantities must match", id="a dot"),
        pytest.param("Mi", "quantities must match", id="a suffix alone"),
        pytest.param("1.1.M", "quantities must match", id="two dots"),
        pytest.param("1+1.0M", "quantities must match", id="a sum"),
        pytest.param("1 Gi", "quantities must match", id="a blank inside"),
        pytest.param("1i", "quantities must match|suffix", id="half a suffix"),
        pytest.param("0.1mi", "suffix", id="a suffix in the wrong case"),
        pytest.param("-3.01e-", "suffix", id="an exponent without digits"),
        pytest.param("1K", "suffix", id="kilo is a small k"),
        pytest.param("1Mi5", "suffix", id="digits after the suffix"),
        pytest.param("1" * 1001, "characters are too many", id="absurdly long"),
        pytest.param("\u0661", "quantities must match", id="digits of another script"),
        pytest.param(True, "quantities must match", id="a boolean"),
        pytest.param(float("nan"), "quantities must match", id="not a number"),
        pytest.param(float("inf"), "quantities must match", id="infinity"),
    ],
)
def test_text_that_is_no_quantity_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        pytest.param("1e999999999999", INT64_MAX * NANO, id="a huge exponent is capped at once"),
        pytest.param("-1e999999999999", -INT64_MAX * NANO, id="also a negative number"),
        pytest.param("1e-999999999999", 1, id="a tiny number is one nano"),
        pytest.param("0e999999999999", 0, id="zero stays zero"),
    ],
)
def test_extreme_exponents_cost_nothing(text, nano):
    assert parse_quantity(text) == nano
