"""Looking inside a model from outside: the model itself knows nothing of it."""

from weft.analysis.capturing import AttentionMap, capture
from weft.analysis.gradient_flow import (
    DepthFlow,
    gradient_by_distance,
    gradient_of_loss_by_distance,
    gradient_through_depth,
)
from weft.analysis.maps import attention_maps, rollout
from weft.analysis.reach import Reach, reach
from weft.analysis.softmax_health import HeadHealth, LayerHealth, health_sentences, softmax_health
from weft.analysis.view import AttentionView, MapView, Side

__all__ = [
    "AttentionMap",
    "AttentionView",
    "DepthFlow",
    "HeadHealth",
    "LayerHealth",
    "MapView",
    "Reach",
    "Side",
    "attention_maps",
    "capture",
    "gradient_by_distance",
    "gradient_of_loss_by_distance",
    "gradient_through_depth",
    "health_sentences",
    "reach",
    "rollout",
    "softmax_health",
]
