"""A trained language model, opened: what it writes, at once or in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torch import nn

from weft.errors import ConfigError
from weft.generation import GenerationConfig, Sample, Weights, generate, is_worth_packing, packed, stream
from weft.tasks.embed.text_encoder import EmbedsTexts
from weft.tasks.given import check_texts
from weft.tasks.run import Run


class TextGenerator(EmbedsTexts):
    """A model that continues a text."""

    def generate(
        self, prompt: str | Sequence[str] = "", *, weights: Weights = "float32", **settings: Any
    ) -> str | list[str]:
        """What the model writes after the prompt: a text, or a list of them for several prompts or samples.

        Settings are those of `GenerationConfig`: max_tokens, temperature, top_k, top_p, min_p, stop, samples, seed …
        """
        texts = [sample.text for sample in self.samples(prompt, weights=weights, **settings)]
        return texts[0] if isinstance(prompt, str) and settings.get("samples", 1) == 1 else texts

    def samples(
        self, prompt: str | Sequence[str] = "", *, weights: Weights = "float32", **settings: Any
    ) -> list[Sample]:
        """The same with everything known about each text: its tokens, why it ended, probabilities if requested."""
        return samples_of(self, check_texts(prompt, "to continue"), weights=weights, **settings)

    def stream(self, prompt: str = "", *, weights: Weights = "float32", **settings: Any) -> Iterator[str]:
        """One text, in pieces as they come."""
        config = GenerationConfig(**settings)
        if config.samples != 1:
            raise ConfigError(f"samples = {config.samples} in a stream", expected="one", advice="use .samples(…)")
        prompts = check_texts(prompt, "to continue")
        return (piece.text for piece in stream(packed_model(self, weights), self.tokenizer, prompts, config))


def samples_of(run: Run, prompts: list[str], *, weights: Weights = "float32", **settings: Any) -> list[Sample]:
    """What a run writes after each prompt."""
    return generate(packed_model(run, weights), run.tokenizer, prompts, GenerationConfig(**settings))


def packed_model(run: Run, weights: Weights = "float32") -> nn.Module:
    """The model for writing, its weights in this form; a small one in float32 is used as it is."""
    run.check_writes()
    if weights == "float32" and not is_worth_packing(run.model):
        return run.model
    if weights not in run.packed_models:
        run.packed_models[weights] = packed(run.model, weights)
    return run.packed_models[weights]
