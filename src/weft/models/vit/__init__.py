"""ViT: a Transformer that reads patches of an image; and its formats of Hugging Face and timm."""

from weft.models.vit.converters import ViTConverter
from weft.models.vit.model import ViT, ViTConfig
from weft.models.vit.timm import TimmViTConverter

__all__ = ["TimmViTConverter", "ViT", "ViTConfig", "ViTConverter"]
