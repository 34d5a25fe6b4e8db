"""word2vec: CBOW and skip-gram, by compiled loops where numba is installed."""

from weft.models.word2vec.model import CBOWConfig, SkipGramConfig, Word2Vec, Word2VecConfig

__all__ = ["CBOWConfig", "SkipGramConfig", "Word2Vec", "Word2VecConfig"]

LATER = ("kernel",)  # compiled when it is first used
