"""The Transformer of 2017: an encoder and a decoder; and the format of Marian's translators."""

from weft.models.transformer.marian import MarianConverter
from weft.models.transformer.model import Transformer, TransformerConfig

__all__ = ["MarianConverter", "Transformer", "TransformerConfig"]
