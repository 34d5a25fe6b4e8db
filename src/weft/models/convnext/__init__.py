"""ConvNeXt: a convolutional network for images; and its formats of Hugging Face and timm."""

from weft.models.convnext.converters import ConvNextConverter
from weft.models.convnext.model import ConvNeXt, ConvNeXtConfig
from weft.models.convnext.timm import TimmConvNeXtConverter

__all__ = ["ConvNeXt", "ConvNeXtConfig", "ConvNextConverter", "TimmConvNeXtConverter"]
