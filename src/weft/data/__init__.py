"""Data: texts as rows of ids on disk, and batches in an order that is a pure function of (seed, epoch, index)."""

from weft.data.order import Shuffle
from weft.data.token_file import TokenFile, tokenise
from weft.data.windows import Sweep, Windows

__all__ = ["Shuffle", "Sweep", "TokenFile", "Windows", "tokenise"]
