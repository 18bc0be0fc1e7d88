"""Replay policies by name."""

REGISTRY = {
    'none': None,
}
