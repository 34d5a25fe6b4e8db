"""What a model will cost before it is trained: parameters, operations, memory, seconds."""

from weft.cost.engine import Cost, cost_of
from weft.cost.estimate import MemoryEstimate
from weft.cost.flops import Operations
from weft.cost.learning import Learning
from weft.cost.seconds import Clock

__all__ = ["Clock", "Cost", "Learning", "MemoryEstimate", "Operations", "cost_of"]
