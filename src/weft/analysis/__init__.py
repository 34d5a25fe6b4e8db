"""Looking inside a model from outside: the model itself knows nothing of it."""

from weft.analysis.attention_maps import AttentionMap, capture

__all__ = ["AttentionMap", "capture"]
