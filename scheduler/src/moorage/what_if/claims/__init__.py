"""Claims in a model: claims of devices and of volumes, made, bound and released with their pods."""
