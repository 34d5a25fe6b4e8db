"""T5: an encoder and a decoder with relative positions; and its format of Hugging Face."""

from weft.models.t5.converters import T5Converter
from weft.models.t5.model import T5, T5Config

__all__ = ["T5", "T5Config", "T5Converter"]
