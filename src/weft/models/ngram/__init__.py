"""N-gram language models: counts, smoothing, and ARPA files."""

from weft.models.ngram.model import NGram, NGramConfig

__all__ = ["NGram", "NGramConfig"]

LATER = ("loops",)  # compiled when it is first used
