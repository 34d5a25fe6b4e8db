"""BERT: a Transformer that reads in both directions; and its format of Hugging Face."""

from weft.models.bert.converters import BertConverter
from weft.models.bert.model import BERT, BERTConfig, HeadConfig

__all__ = ["BERT", "BERTConfig", "BertConverter", "HeadConfig"]
