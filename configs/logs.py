"""Recipes of logs on disk: copy this file, and give it with `--recipes`."""
from graphsane_tf.configs.logs import RECIPES

__all__ = ['RECIPES']
