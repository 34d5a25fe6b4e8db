"""Looking inside a model from outside: the model itself knows nothing of it."""

from weft.analysis.capturing import AttentionMap, capture
from weft.analysis.gradient_flow import gradient_by_distance, gradient_of_loss_by_distance
from weft.analysis.maps import attention_maps, rollout
from weft.analysis.softmax_health import HeadHealth, LayerHealth, health_sentences, softmax_health
from weft.analysis.view import AttentionView, MapView, Side

__all__ = [
    "AttentionMap",
    "AttentionView",
    "HeadHealth",
    "LayerHealth",
    "MapView",
    "Side",
    "attention_maps",
    "capture",
    "gradient_by_distance",
    "gradient_of_loss_by_distance",
    "health_sentences",
    "rollout",
    "softmax_health",
]
