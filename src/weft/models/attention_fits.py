"""Whether an attention kind fits a model: checked when settings are made, before training starts."""

from __future__ import annotations

from weft.blocks import AttentionConfig, PositionConfig
from weft.blocks.position import ALiBiConfig, RelativeConfig
from weft.errors import ConfigError


def check_attention(attention: AttentionConfig, position: PositionConfig | None = None, *, writes: bool) -> None:
    """Raise `ConfigError` for a kind that sees later tokens in a causal model, or has no scores to add positions to."""
    if writes and not attention.writes:
        blamed = next(kind for kind in attention.members if not kind.writes)
        learned = " with learned tokens" if getattr(blamed, "learned", 0) else ""
        raise ConfigError(
            f"attention.kind = {blamed.kind}{learned} in a model that writes: it sees the whole text at once",
            expected="global tokens by their places" if learned else f"one of {', '.join(kinds(writes=True))}",
        )
    if isinstance(position, RelativeConfig | ALiBiConfig) and not attention.takes_bias:
        blamed = next(kind for kind in attention.members if not kind.takes_bias)
        raise ConfigError(
            f"attention.kind = {blamed.kind} with position.kind = {position.kind}: it has no scores to add that to",
            expected="position.kind = rotary, sinusoidal, learned or none",
        )


def kinds(*, writes: bool) -> list[str]:
    """The attention kinds that a model can have; `writes`: a causal one."""
    return [kind for kind, config in AttentionConfig.registry.items() if config().writes or not writes]


def sees_everything(attention: AttentionConfig, length: int) -> str | None:
    """The name of a sparse kind that still sees all of a text of this length; or None."""
    return next((str(kind.kind) for kind in attention.members if kind.leaves_nothing_out(length)), None)
