"""The version of the package; `moorage.__version__` for users."""

from __future__ import annotations

__version__ = "0.1.0"
