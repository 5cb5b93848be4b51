"""The workflows that build, test and publish on a tag or a change."""
