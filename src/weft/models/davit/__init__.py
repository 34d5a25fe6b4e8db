"""DaViT: attention in windows and between channels in turn; and its format of timm."""

from weft.models.davit.converters import DaViTConverter
from weft.models.davit.model import DaViT, DaViTConfig

__all__ = ["DaViT", "DaViTConfig", "DaViTConverter"]
