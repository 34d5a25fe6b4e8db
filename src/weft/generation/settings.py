"""How text is written: the `generation` section of the settings."""

from __future__ import annotations

from weft.config import Amount, Config, Count, Positive, Share, Size
from weft.errors import ConfigError


class GenerationConfig(Config):
    """How each next token is chosen, and when to stop.

    max_tokens          how many new tokens at most
    temperature         divides the logits: below 1 more cautious, above 1 bolder, 0 always the likeliest (greedy)
    top_k               only the k likeliest tokens
    top_p               only the likeliest tokens that together have this probability (Holtzman et al. 2019)
    min_p               only tokens at least this likely, relative to the likeliest (Nguyen et al. 2024)
    repetition_penalty  above 1, tokens that are there already become less likely (Keskar et al. 2019)
    stop                strings that end the text; they are not part of it
    samples             how many texts for each prompt
    seed                sample i of seed s is always the same text, alone or in company
    alternatives        also report the probability of each chosen token and this many of the best others
    """

    max_tokens: Size = 200
    temperature: Amount = 0.8
    top_k: Size | None = None
    top_p: Share | None = 0.95
    min_p: Share | None = None
    repetition_penalty: Positive = 1.0
    stop: tuple[str, ...] = ()
    samples: Size = 1
    seed: Count = 0
    alternatives: Count | None = None

    def check(self) -> None:
        if "" in self.stop:
            raise ConfigError("an empty stop string", expected="at least one character")
