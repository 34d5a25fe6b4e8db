"""Plugins that WEFT_PLUGINS names are loaded before the suites are collected: each suite finds what they add."""

from weft.plugins import load_all

load_all()
