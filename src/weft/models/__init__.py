"""Model families: a file or a folder each, found automatically in this folder.

Converters of other programs' formats are in the family's folder, and are found there as well. The names below are those
that `from weft.models import …` gives; a new family needs none.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable
from importlib import import_module

from weft.models.bag_of_words import BagOfWords, BagOfWordsConfig
from weft.models.base import LanguageConfig, Model, ModelConfig
from weft.models.bert import BERT, BERTConfig, BertConverter, HeadConfig
from weft.models.capabilities import (
    CarriesState,
    CausalLM,
    ClassifiesImages,
    ClassifiesText,
    EncodesImages,
    EncodesText,
    FillsMasks,
    FillsSpans,
    LearnsByCounting,
    Seq2SeqLM,
    TokenVectorTable,
    WordVectorTable,
)
from weft.models.converter import Converter, converter_for, converter_of
from weft.models.convnext import ConvNeXt, ConvNeXtConfig, ConvNextConverter, TimmConvNeXtConverter
from weft.models.davit import DaViT, DaViTConfig, DaViTConverter
from weft.models.decoder import CausalDecoder, DecoderTransformer
from weft.models.encoder_decoder import EncoderDecoder, Memory
from weft.models.encoding import LengthBucket, PackedTexts, encode, encode_buckets, encode_first
from weft.models.gpt import GPT, GPT2Converter, GPTConfig, LlamaConverter, NanoChatConverter, Qwen3Converter
from weft.models.hugging_face_config import HuggingFaceConfig
from weft.models.images import ImageConfig, ImageHead, ImageModel
from weft.models.ngram import NGram, NGramConfig
from weft.models.pair_model import PairModel, PairModelConfig
from weft.models.preprocessing import Preprocessing
from weft.models.presets import default_for, families_for, is_model, learns, named, preset, sizing_of
from weft.models.resnet import ResNet, ResNetConfig
from weft.models.rnn import GRUConfig, LSTMConfig, RecurrentConfig, RecurrentModel, RNNConfig
from weft.models.seq2seq import Bahdanau, BahdanauConfig, Seq2Seq, Seq2SeqConfig
from weft.models.sizing import Budget, SizePreset, Sizing
from weft.models.t5 import T5, T5Config, T5Converter
from weft.models.timm import TimmConverter
from weft.models.transformer import MarianConverter, Transformer, TransformerConfig
from weft.models.vit import TimmViTConverter, ViT, ViTConfig, ViTConverter
from weft.models.word2vec import CBOWConfig, SkipGramConfig, Word2Vec, Word2VecConfig

__all__ = [
    "BERT",
    "GPT",
    "T5",
    "BERTConfig",
    "BagOfWords",
    "BagOfWordsConfig",
    "Bahdanau",
    "BahdanauConfig",
    "BertConverter",
    "Budget",
    "CBOWConfig",
    "CarriesState",
    "CausalDecoder",
    "CausalLM",
    "ClassifiesImages",
    "ClassifiesText",
    "ConvNeXt",
    "ConvNeXtConfig",
    "ConvNextConverter",
    "Converter",
    "DaViT",
    "DaViTConfig",
    "DaViTConverter",
    "DecoderTransformer",
    "EncoderDecoder",
    "EncodesImages",
    "EncodesText",
    "FillsMasks",
    "FillsSpans",
    "GPT2Converter",
    "GPTConfig",
    "GRUConfig",
    "HeadConfig",
    "HuggingFaceConfig",
    "ImageConfig",
    "ImageHead",
    "ImageModel",
    "LSTMConfig",
    "LanguageConfig",
    "LearnsByCounting",
    "LengthBucket",
    "LlamaConverter",
    "MarianConverter",
    "Memory",
    "Model",
    "ModelConfig",
    "NGram",
    "NGramConfig",
    "NanoChatConverter",
    "PackedTexts",
    "PairModel",
    "PairModelConfig",
    "Preprocessing",
    "Qwen3Converter",
    "RNNConfig",
    "RecurrentConfig",
    "RecurrentModel",
    "ResNet",
    "ResNetConfig",
    "Seq2Seq",
    "Seq2SeqConfig",
    "Seq2SeqLM",
    "SizePreset",
    "Sizing",
    "SkipGramConfig",
    "T5Config",
    "T5Converter",
    "TimmConvNeXtConverter",
    "TimmConverter",
    "TimmViTConverter",
    "TokenVectorTable",
    "Transformer",
    "TransformerConfig",
    "ViT",
    "ViTConfig",
    "ViTConverter",
    "Word2Vec",
    "Word2VecConfig",
    "WordVectorTable",
    "converter_for",
    "converter_of",
    "default_for",
    "encode",
    "encode_buckets",
    "encode_first",
    "families_for",
    "find_families",
    "is_model",
    "learns",
    "named",
    "preset",
    "sizing_of",
]


def find_families(path: Iterable[str] = __path__, package: str = __name__) -> None:
    """Import all modules of this folder: defining a config or a converter puts it on its registry. Of a family's folder
    all modules are imported but those that it loads `LATER`."""
    for found in pkgutil.iter_modules(path):
        module = import_module(f"{package}.{found.name}")
        if found.ispkg:
            later = getattr(module, "LATER", ())
            for part in pkgutil.iter_modules(module.__path__):
                if part.name not in later:
                    import_module(f"{module.__name__}.{part.name}")


find_families()
