"""Model families: one file each, read from top to bottom. A new family is a new file and one line here.

How other programs write a family down stands beside it in `…_layouts.py`; importing it puts it on the menu.
"""

from weft.models.base import LanguageConfig, ModelConfig
from weft.models.bert import BERT, BERTConfig, HeadConfig
from weft.models.bert_layouts import BertLayout
from weft.models.convnext import ConvNeXt, ConvNeXtConfig
from weft.models.convnext_layouts import ConvNextLayout
from weft.models.davit import DaViT, DaViTConfig
from weft.models.davit_layouts import DaViTLayout
from weft.models.encoder_decoder import EncoderDecoder, Memory
from weft.models.encoding import Bunch, TextClassifier, TextRow, encode, encode_bunches, encode_first
from weft.models.gpt import GPT, GPTConfig
from weft.models.gpt_layouts import GPT2Layout
from weft.models.layouts import Foreign, Layout, layout_for, layout_of
from weft.models.llama_layouts import LlamaLayout, NanoChatLayout, Qwen3Layout
from weft.models.marian_layouts import MarianLayout
from weft.models.pictures import PictureConfig, PictureHead, PictureModel
from weft.models.preprocessing import Preprocessing
from weft.models.presets import preset
from weft.models.resnet import ResNet, ResNetConfig
from weft.models.rnn import GRUConfig, LSTMConfig, RecurrentConfig, RecurrentModel, RNNConfig
from weft.models.t5 import T5, T5Config
from weft.models.t5_layouts import T5Layout
from weft.models.timm_layouts import TimmConvNeXtLayout, TimmLayout, TimmViTLayout
from weft.models.transformer import Transformer, TransformerConfig
from weft.models.vit import ViT, ViTConfig
from weft.models.vit_layouts import ViTLayout

__all__ = [
    "BERT",
    "GPT",
    "T5",
    "BERTConfig",
    "BertLayout",
    "Bunch",
    "ConvNeXt",
    "ConvNeXtConfig",
    "ConvNextLayout",
    "DaViT",
    "DaViTConfig",
    "DaViTLayout",
    "EncoderDecoder",
    "Foreign",
    "GPT2Layout",
    "GPTConfig",
    "GRUConfig",
    "HeadConfig",
    "LSTMConfig",
    "LanguageConfig",
    "Layout",
    "LlamaLayout",
    "MarianLayout",
    "Memory",
    "ModelConfig",
    "NanoChatLayout",
    "PictureConfig",
    "PictureHead",
    "PictureModel",
    "Preprocessing",
    "Qwen3Layout",
    "RNNConfig",
    "RecurrentConfig",
    "RecurrentModel",
    "ResNet",
    "ResNetConfig",
    "T5Config",
    "T5Layout",
    "TextClassifier",
    "TextRow",
    "TimmConvNeXtLayout",
    "TimmLayout",
    "TimmViTLayout",
    "Transformer",
    "TransformerConfig",
    "ViT",
    "ViTConfig",
    "ViTLayout",
    "encode",
    "encode_bunches",
    "encode_first",
    "layout_for",
    "layout_of",
    "preset",
]
