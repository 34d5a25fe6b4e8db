"""Looking inside a model from outside: the model itself knows nothing of it."""

from weft.analysis.capturing import AttentionMap, capture
from weft.analysis.gradient_flow import gradient_by_distance, gradient_of_loss_by_distance
from weft.analysis.maps import attention_maps, rollout
from weft.analysis.view import AttentionView, MapView, Side

__all__ = [
    "AttentionMap",
    "AttentionView",
    "MapView",
    "Side",
    "attention_maps",
    "capture",
    "gradient_by_distance",
    "gradient_of_loss_by_distance",
    "rollout",
]
