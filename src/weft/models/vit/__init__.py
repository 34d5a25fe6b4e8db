"""ViT: a Transformer that reads patches of an image; how Hugging Face writes it down."""

from weft.models.vit.converters import ViTConverter
from weft.models.vit.model import ViT, ViTConfig
from weft.models.vit.timm import TimmViTConverter

__all__ = ["TimmViTConverter", "ViT", "ViTConfig", "ViTConverter"]
