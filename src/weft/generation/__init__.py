"""Writing with a model: sampling, streaming, and weights kept in forms that decode fast."""

from weft.generation.context import LanguageModel, Reading, window_start
from weft.generation.generate import Piece, Sample, Step, generate, stream
from weft.generation.packing import Weights, is_worth_packing, packed
from weft.generation.settings import GenerationConfig

__all__ = [
    "GenerationConfig",
    "LanguageModel",
    "Piece",
    "Reading",
    "Sample",
    "Step",
    "Weights",
    "generate",
    "is_worth_packing",
    "packed",
    "stream",
    "window_start",
]
