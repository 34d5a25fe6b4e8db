"""Writing with a model: sampling, searching, streaming, and weights kept in forms that decode fast."""

from weft.generation.context import Reading, window_start
from weft.generation.decoding import Decoding, Hypothesis, SearchConfig
from weft.generation.generate import Sample, Step, TextChunk, generate, stream
from weft.generation.packing import Weights, is_worth_packing, packed
from weft.generation.search import beam_search, greedy, sample
from weft.generation.settings import GenerationConfig

__all__ = [
    "Decoding",
    "GenerationConfig",
    "Hypothesis",
    "Reading",
    "Sample",
    "SearchConfig",
    "Step",
    "TextChunk",
    "Weights",
    "beam_search",
    "generate",
    "greedy",
    "is_worth_packing",
    "packed",
    "sample",
    "stream",
    "window_start",
]
