"""DaViT: attention in windows and between channels in turn; how timm writes it down."""

from weft.models.davit.converters import DaViTConverter
from weft.models.davit.model import DaViT, DaViTConfig

__all__ = ["DaViT", "DaViTConfig", "DaViTConverter"]
