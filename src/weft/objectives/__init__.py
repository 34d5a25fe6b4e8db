"""What a model's result is worth: (model, batch) → a sum of losses and how many were summed."""

from weft.objectives.causal import causal_loss

__all__ = ["causal_loss"]
