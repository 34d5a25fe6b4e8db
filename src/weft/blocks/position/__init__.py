"""Position kinds: one file each, picked by name. A new kind is a new file and one line here."""

from weft.blocks.position.alibi import ALiBi, ALiBiConfig
from weft.blocks.position.base import NoPositionConfig, Position, PositionConfig
from weft.blocks.position.learned import Learned, LearnedConfig
from weft.blocks.position.relative import RelativeBias, RelativeConfig
from weft.blocks.position.rotary import Rotary, RotaryConfig
from weft.blocks.position.sinusoidal import Sinusoidal, SinusoidalConfig, sinusoids

__all__ = [
    "ALiBi",
    "ALiBiConfig",
    "Learned",
    "LearnedConfig",
    "NoPositionConfig",
    "Position",
    "PositionConfig",
    "RelativeBias",
    "RelativeConfig",
    "Rotary",
    "RotaryConfig",
    "Sinusoidal",
    "SinusoidalConfig",
    "sinusoids",
]
