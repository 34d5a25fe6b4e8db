"""What a model will cost before it is trained: parameters, operations, memory."""

from weft.cost.language_model import Cost, cost_of
from weft.cost.picture_model import picture_cost
from weft.cost.recurrent import recurrent_cost

__all__ = ["Cost", "cost_of", "picture_cost", "recurrent_cost"]
