"""``python -m moorage``: the command line, where the script ``moorage`` is not on the path."""

from __future__ import annotations

from moorage.cli.entry import main

if __name__ == "__main__":
    main()
