"""The task `fill`: learn to fill in hidden words or spans."""
