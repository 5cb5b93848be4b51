"""The command line: one module or package for each command; the only place that composes rooms.

Start-up time matters here: modules import click at the top and everything heavy inside the
command that needs it. A package has its command in `command`. Modules that several commands share
stand next to them: `options`, `session`, `manifests`, `kinds`, `render`, `plugins`, `checking` and
`json_log`.
"""
