"""Exact Kubernetes quantities; everything that counts resources goes through here.

A quantity is kept as an integer of nano units (1 unit = 10**9), which is the finest Kubernetes
knows, so sums are exact and rounding to milli or whole units happens once, at the end.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Final, NamedTuple

from moorage.api.meta import Quantity

NANO: Final = 10**9
"""Nano units in one unit."""

INT64_MAX: Final = 2**63 - 1

_LIMIT: Final = INT64_MAX * NANO

# A longer text is no sensible quantity; the limit also keeps int() below Python's own limit.
_TEXT_LENGTH_MAX: Final = 1000

_FORM: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?P<suffix>[eEinumkKMGTP]*[-+]?[0-9]*)"
)
_EXPONENT: Final = re.compile(r"[eE](?P<power>[-+]?[0-9]+)")
_DECIMAL: Final[dict[str, int]] = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY: Final[dict[str, int]] = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_NAME: Final = {power: name for name, power in _DECIMAL.items()}
_BINARY_NAME: Final = {0: ""} | {power: name for name, power in _BINARY.items()}

# The API server's own words, since users search for them (kubernetes v1.36
# staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go).
_BAD_FORM: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_BAD_NUMBER: Final = "unable to parse numeric part of quantity"
_BAD_SUFFIX: Final = "unable to parse quantity's suffix"


# More digits than this do not fit into int64 for sure (upstream's maxInt64Factors).
_FAST_DIGITS: Final = 18
# Nothing is raised to a higher power of ten: the longest text has fewer digits.
_POWER_MAX: Final = _TEXT_LENGTH_MAX


class _Parsed(NamedTuple):
    nano: int  # within int64 units
    exact: int  # nano units; binary quantities are within int64 units
    form: str  # "binary", "decimal" or "exponent"
    as_sent: str  # the text, where the API server keeps it; else empty


def parse_quantity(value: Quantity) -> int:
    """Return the value of a quantity in nano units.

    Parameters
    ----------
    value
        Text as on the wire (``500m``, ``1.5Gi``, ``2e3``), or a JSON number.

    Returns
    -------
    int
        Nano units, rounded away from zero below nano, and kept within plus or minus
        ``2**63 - 1`` whole units.

    Raises
    ------
    ValueError
        Not a quantity; the message is the API server's.

    Notes
    -----
    kubernetes v1.36 ``apimachinery/pkg/api/resource``. It differs in one point: upstream caps only
    some spellings of numbers beyond int64 and reads the rest as 0 later; here all are capped.
    """
    return _parse(value).nano


def milli(nano: int) -> int:
    """Return nano units as thousandths, rounded up, kept within int64."""
    return _within_int64(-(-nano // 10**6))


def value(nano: int) -> int:
    """Return nano units as whole units, rounded up, kept within int64."""
    return _within_int64(-(-nano // NANO))


@lru_cache(maxsize=65536, typed=True)
def canonical(quantity: Quantity) -> str:
    """Return the spelling the API server would store: ``0.5`` is ``500m``, ``1024Mi`` ``1Gi``.

    The family of the suffix (binary, decimal, exponent) is kept, except that binary quantities
    which are small or not whole are shown in decimal. Decimal quantities beyond int64 keep their
    value, binary ones do not.

    Raises
    ------
    ValueError
        Not a quantity.

    Notes
    -----
    kubernetes v1.36 ``apimachinery/pkg/api/resource/quantity.go``, ParseQuantity: a decimal text of
    at most 18 digits stays as it is, if its places are a multiple of three (``1.234``).
    """
    _, nano, form, as_sent = _parse(quantity)
    if as_sent:
        return as_sent
    if nano == 0:
        return "0"
    sign, size = ("-", -nano) if nano < 0 else ("", nano)
    if form == "binary" and size >= 1024 * NANO and size % NANO == 0:
        number, power = size // NANO, 0
        while number % 1024 == 0 and power < max(_BINARY_NAME):
            number, power = number // 1024, power + 10
        return f"{sign}{number}{_BINARY_NAME[power]}"
    number, power = size, -9
    while number % 1000 == 0 and (power < max(_DECIMAL_NAME) or form == "exponent"):
        number, power = number // 1000, power + 3
    if form == "exponent":
        return f"{sign}{number}e{power}" if power else f"{sign}{number}"
    return f"{sign}{number}{_DECIMAL_NAME[power]}"


def from_nano(nano: int, *, binary: bool) -> str:
    """Return an amount in nano units as the API server would store it.

    Parameters
    ----------
    nano
        The amount.
    binary
        Whether to use binary units, where the amount is a multiple of 1024.
    """
    if binary and nano % (1024 * NANO) == 0:
        return canonical(f"{nano // (1024 * NANO)}Ki")
    return canonical(f"{nano}n")


@lru_cache(maxsize=65536, typed=True)
def _parse(value: Quantity) -> _Parsed:
    text = _text(value)
    match = _FORM.fullmatch(text)
    digits, places = "", 0
    if match is not None:
        digits = match["whole"] + (match["fraction"] or "")
        places = len(match["fraction"] or "")
    if match is None or not digits:
        raise ValueError(_BAD_FORM)
    mantissa, suffix = int(digits), match["suffix"]
    sign = -1 if match["sign"] == "-" else 1
    if suffix in _BINARY:
        nano = sign * min(_scaled(mantissa << _BINARY[suffix], 9 - places), _LIMIT)
        return _Parsed(nano, nano, "binary", "")
    if suffix in _DECIMAL:
        form, power = "decimal", _DECIMAL[suffix] - places
    elif exponent := _EXPONENT.fullmatch(suffix):
        form, power = "exponent", int(exponent["power"]) - places
    else:
        raise ValueError(_BAD_SUFFIX)
    exact = sign * _scaled(mantissa, 9 + power)
    nano = max(-_LIMIT, min(exact, _LIMIT))
    significant = (match["whole"].lstrip("0") or "0") + (match["fraction"] or "")
    stays = (
        power >= -9
        and power % 3 == 0
        and len(significant) <= _FAST_DIGITS
        and significant[0] != "0"
        and not significant.endswith("000")
    )
    return _Parsed(nano, exact, form, text if stays else "")


def _within_int64(number: int) -> int:
    return max(-INT64_MAX, min(number, INT64_MAX))


def _text(value: Quantity) -> str:
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(_BAD_FORM)
    text = value.strip() if isinstance(value, str) else str(value)
    if len(text) > _TEXT_LENGTH_MAX:
        raise ValueError(f"{_BAD_NUMBER}: {len(text)} characters are too many")
    return text


def _scaled(mantissa: int, power: int) -> int:
    """Return ``mantissa * 10**power`` rounded up, without building absurdly long numbers."""
    if mantissa == 0:
        return 0
    if power >= 0:
        factor: int = 10 ** min(power, _POWER_MAX)
        return mantissa * factor
    if power < -_TEXT_LENGTH_MAX - 20:
        return 1  # more places than the text has digits: less than a nano unit
    divisor: int = 10**-power
    return -(-mantissa // divisor)
