"""Small logs and contexts that several tests share; they come with the package, for tests of methods outside it."""
from graphsane_tf.testing.logs import (  # pylint: disable=unused-import
    context_of, default_config, growing_log, interactions_of, random_log, tiny_config)
