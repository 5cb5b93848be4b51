"""Every configuration under examples/ is one that the scheduler accepts.

What the configurations do is tested with the feature: packing, elastic quotas, extenders.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.config.load import load_config
from moorage.config.merge import expand_profiles
from moorage_sandbox.testing.plugins import with_plugins
from tools.pages.example_blocks import filled

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = [f"{ROOT}/examples/plugins/keep_headroom.py:KeepHeadroom"]
CONFIGURATIONS = sorted(
    path
    for path in (ROOT / "examples").rglob("*.yaml")
    if "kind: KubeSchedulerConfiguration" in path.read_text()
)


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda path: path.stem)
def test_a_scheduler_accepts_the_configuration(path: Path) -> None:
    config, registry = with_plugins(PLUGINS, config=load_config(path))
    assert expand_profiles(config.scheduler, registry)


def test_a_marked_block_holds_the_file_without_its_leading_comment(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples/a.yaml").write_text("# Try it:\n#   moorage up\nkind: A\n# why\nb: 1\n")
    page = "<!-- examples/a.yaml -->\n```yaml\nold\n```\n\n```yaml\nkept\n```\n"
    assert filled(page, tmp_path) == (
        "<!-- examples/a.yaml -->\n```yaml\nkind: A\n# why\nb: 1\n```\n\n```yaml\nkept\n```\n"
    )


def test_a_marked_block_of_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match=r"examples/gone\.yaml, which does not exist"):
        filled("<!-- examples/gone.yaml -->\n```yaml\n```\n", tmp_path)
