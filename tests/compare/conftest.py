"""What the tests of comparisons share; see compare_setup.py."""

from compare_setup import folder, in_process

__all__ = ["folder", "in_process"]
