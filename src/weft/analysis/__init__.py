"""Looking inside a model from outside: the model itself knows nothing of it."""

from weft.analysis.attention_maps import AttentionMap, capture
from weft.analysis.gradient_flow import gradient_by_distance, gradient_of_loss_by_distance
from weft.analysis.softmax_health import HeadHealth, LayerHealth, health_sentences, softmax_health

__all__ = [
    "AttentionMap",
    "HeadHealth",
    "LayerHealth",
    "capture",
    "gradient_by_distance",
    "gradient_of_loss_by_distance",
    "health_sentences",
    "softmax_health",
]
