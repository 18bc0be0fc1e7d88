"""Packaging: what setup.cfg cannot say. The benchmark is a package of its own beside the mains that use it."""
import setuptools

setuptools.setup(
    packages=setuptools.find_packages(include=['graphsane_tf*']) + ['graphsane_benchmark'],
    package_dir={'graphsane_benchmark': 'experiments/graphsane_benchmark'})
