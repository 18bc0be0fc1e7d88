"""Selects legacy Keras before any test module imports TensorFlow."""
import graphsane_tf  # pylint: disable=unused-import
