"""What a model will cost before it is trained: parameters, operations, memory."""

from weft.cost.language_model import Cost, cost_of

__all__ = ["Cost", "cost_of"]
