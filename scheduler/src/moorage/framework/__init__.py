"""Contracts between the scheduler and its plugins.

Belongs here: answers of plugins (`status`), the extension points (`points`), and the objects that a
plugin may use (`handle`). Also the known plugins (`registry`), the plugins of a profile
(`profile`), running them (`runner`), and explaining a failed attempt (`diagnosis`). Opinions about
placement belong in `plugins`.
"""
