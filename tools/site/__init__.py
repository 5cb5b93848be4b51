"""The documents as a site: what `make site` builds from docs/."""
