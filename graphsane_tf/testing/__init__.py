"""What must hold for every method, for methods outside the package, too.

    pytest -p graphsane_tf.testing.plugin --pyargs graphsane_tf.testing --plugin=path/to/file.py

runs the suites of the samplers, distillers, backbones, replay policies, clusterings and peers that the file
registers. The package's own tests run the same suites on its own methods.
"""
