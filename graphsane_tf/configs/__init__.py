"""Named configurations: `--config=paper` is `paper.py` here; a path names a file of the user's own."""
