#!/usr/bin/env bash
# Builds all files of the release that HEAD is tagged with, and checks them. Usage: build-release.sh VERSION [TARGET]
set -euo pipefail
cd "$(dirname "$0")/../.."
version=$1 target=${2:-dist}

make venv
wanted=$(.venv/bin/python -c 'from moorage.base.version import __version__; print(__version__)')
if [ "$version" != "$wanted" ]; then
  echo "the tag is for $version, and the checkout is $wanted" >&2
  exit 1
fi
.venv/bin/python -m tools.release.build "$target"
if command -v sha256sum >/dev/null; then check=(sha256sum --check --quiet); else check=(shasum -a 256 --check); fi
(cd "$target" && "${check[@]}" SHA256SUMS)
