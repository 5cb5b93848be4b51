"""Files of pictures: which ones can be drawn, and the same bytes for the same picture."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Final

from moorage.base.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES: Final = (".svg", ".png", ".pdf")
_DATELESS: Final = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def check_picture(file: Path) -> None:
    """Refuse a picture that could not be drawn, before any work is done.

    Raises
    ------
    UsageError
        The suffix is unknown, or matplotlib is missing.
    """
    if file.suffix not in SUFFIXES:
        raise UsageError(f"{file}: the suffix says the format, one of {', '.join(SUFFIXES)}")
    check_library()


def check_library() -> None:
    """Refuse to draw where matplotlib is missing.

    Raises
    ------
    UsageError
        It is not installed.
    """
    try:
        import matplotlib  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise UsageError("a picture needs matplotlib: pip install 'moorage[plot]'") from error


def as_bytes(figure: Figure, form: str, *, dpi: int = 150) -> bytes:
    """Return a figure as a picture, without a date and with fixed ids.

    Parameters
    ----------
    form
        ``svg``, ``png`` or ``pdf``.
    dpi
        Dots an inch, where the form has dots.
    """
    from matplotlib import rc_context

    data = io.BytesIO()
    with rc_context({"svg.hashsalt": "moorage", "svg.fonttype": "none"}):
        figure.savefig(data, format=form, metadata=_DATELESS.get(form), dpi=dpi)
    return data.getvalue()


def write_picture(figure: Figure, file: Path, *, dpi: int = 150) -> None:
    """Write a figure; the suffix says the format.

    Raises
    ------
    UsageError
        The file cannot be written.
    """
    try:
        file.write_bytes(as_bytes(figure, file.suffix.removeprefix("."), dpi=dpi))
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from error
