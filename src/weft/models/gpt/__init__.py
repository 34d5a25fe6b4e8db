"""GPT: a causal Transformer that predicts the next token; and its formats of other programs."""

from weft.models.gpt.converters import GPT2Converter
from weft.models.gpt.llama import LlamaConverter, NanoChatConverter, Qwen3Converter
from weft.models.gpt.model import GPT, GPTConfig

__all__ = ["GPT", "GPT2Converter", "GPTConfig", "LlamaConverter", "NanoChatConverter", "Qwen3Converter"]
