"""Contracts between the scheduler and its plugins.

Belongs here: what a plugin answers (`status`), the extension points (`points`), what it may use
(`handle`), how plugins are known (`registry`), put together (`profile`) and run (`runner`), and
how a failed attempt is told (`diagnosis`). Opinions about placement belong in `plugins`.
"""
