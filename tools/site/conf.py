"""The configuration of Sphinx for the site; `tools.site.build` sets the folders."""

from __future__ import annotations

import os

from moorage.base.version import __version__

project = "moorage"
author = "The moorage authors"
copyright = author  # noqa: A001 - Sphinx's name
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"moorage {version}"
html_static_path: list[str] = []
templates_path = [os.path.join(os.path.dirname(__file__), "templates")]  # noqa: PTH118, PTH120
html_show_sphinx = False
html_copy_source = False
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "versions.html",
        "sidebar/scroll-end.html",
    ]
}
# The other versions next to this one, as `make site VERSIONS='0.1.0 0.2.0'` names them.
html_context = {"versions": os.environ.get("MOORAGE_SITE_VERSIONS", "").split()}

myst_heading_anchors = 4
myst_links_external_new_tab = False
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_preprocess_types = True
default_role = "py:obj"
# The lexer of PromQL refuses the colons of recorded rules; there is none for diagrams in Mermaid.
suppress_warnings = ["misc.highlighting_failure"]
