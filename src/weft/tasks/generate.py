"""Training a model that writes: text in, a run directory out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from weft.checkpoints import RunDirectory
from weft.data import Windows
from weft.errors import ConfigError, UnsupportedError
from weft.generation import GenerationConfig, generate
from weft.models import ModelConfig, Word2VecConfig, preset
from weft.objectives import causal_loss
from weft.tasks import planning
from weft.tasks.evaluation import evaluate_text
from weft.tasks.held_out import HeldOut, windows_of
from weft.tasks.job import Job, Report
from weft.tasks.overlap import overlap_warnings
from weft.tasks.preparation import Texts, learned_from, tokenised
from weft.tasks.request import Request
from weft.tasks.run import Run
from weft.tasks.settings import RunConfig
from weft.tasks.sizes import rung_for, sizes_of
from weft.tasks.sources import DataConfig, check_unchanged, read_source
from weft.tasks.start import GENTLE, LENGTH, Start, WordStart
from weft.tasks.task import Prepared, Task
from weft.tasks.vocabulary import tokenizer_fields
from weft.text import Tokenizer, TokenizerConfig
from weft.training import Ranks
from weft.training.freezing import freeze
from weft.training.resume import Carried

MINUTES = 5.0  # when the user says nothing


class GenerateConfig(RunConfig):
    """All settings of a run that learns to write."""

    data: DataConfig


class Generate(Task):
    """Predict the next token of a text, and so learn to write."""

    name = "generate"
    family = "gpt"
    families: ClassVar[tuple[str, ...]] = ("gpt",)
    settings = GenerateConfig
    writes = True

    def check_family(self, name: str, family: str) -> None:
        if family not in self.families:
            raise UnsupportedError(
                f"{name} does not go on with a text", expected="a gpt, an lstm or n-grams", advice="--model gpt"
            )

    def check_tokenizer(self, config: TokenizerConfig) -> None:
        """What a model writes is read by people: its tokens must spell text exactly."""
        if not config.gives_text_back:
            exact = [kind for kind, entry in TokenizerConfig.menu.items() if getattr(entry, "gives_text_back", False)]
            raise ConfigError(
                f"the tokenizer {config.kind!r} is not for writing: it does not give text back",
                expected=f"one of {', '.join(exact)}",
            )

    def check_start(self, run: Run) -> None:
        if isinstance(run.model_config, Word2VecConfig):  # word vectors are a beginning too
            return
        run.check_writes()

    def prepare(self, request: Request, start: Start | None, ranks: Ranks, report: Report) -> Prepared:
        source = read_source(request.data_config(DataConfig))
        for text in overlap_warnings(source) if ranks.is_first else ():
            report({"event": "warning", "text": text})
        tokenizer_config = None
        if start is None:
            fields = tokenizer_fields(request.tokenizer, source.train.characters)
            tokenizer_config = request.apply("tokenizer", TokenizerConfig.pick(fields))
            tokenizer = learned_from(tokenizer_config, source, report)
        else:
            tokenizer = start.tokenizer
        texts = tokenised(source, tokenizer, report)
        report({"event": "phase", "name": "planning"})
        return self.reading(_plan(self, request, texts, tokenizer_config, start, ranks), texts)

    def reopen(self, config: GenerateConfig, run: RunDirectory, report: Report) -> Prepared:
        source = read_source(config.data)
        check_unchanged(config.data, source.config)
        return self.reading(config, tokenised(source, Tokenizer.load(run.tokenizer_file), report))

    # -- what differs between families --------------------------------------------------------

    def reading(self, config: GenerateConfig, texts: Texts) -> Reading:
        """How the texts are read."""
        return Reading(config, texts)

    def sizes(self, flops: float, texts: Texts) -> Sizes:
        """What suits so many operations of training."""
        rung = rung_for(flops)
        return Sizes(sizes_of(rung), rung.length, rung.batch * rung.length, {})


@dataclass(frozen=True)
class Sizes:
    """Fields of a model named by its family alone; tokens that are read at a time and in a step; how it learns."""

    model: Mapping[str, Any]
    length: int
    step_tokens: int
    learning: Mapping[str, Any]


TASK = Generate()


@dataclass
class Reading(Prepared):
    """Texts as tokens, read in windows."""

    config: GenerateConfig
    texts: Texts

    @property
    def loss(self) -> Callable[..., Any]:
        return causal_loss

    @property
    def tokenizer(self) -> Tokenizer:  # type: ignore[override]
        return self.texts.tokenizer

    @property
    def length(self) -> int:
        """Tokens in a window."""
        longest = self.config.model.context or LENGTH
        return min(longest, self.config.data.length or longest, len(self.texts.train) - 1)

    @property
    def per_epoch(self) -> int:
        return Windows(self.texts.train, self.length, 0).per_epoch

    def samples(self) -> Callable[[np.ndarray], Any]:
        windows = Windows(self.texts.train, self.length, self.config.training.seed)
        return lambda numbers: torch.from_numpy(windows.batch(numbers))

    @property
    def judged_tokens(self) -> int:
        return self.texts.judged

    def job(self, sample: str | None = None) -> Job:
        texts, device = self.texts, torch.device(self.config.training.device)
        parts = {"validation": texts.validation, "test": texts.test}

        def measure(model: nn.Module, part: str, ranks: Ranks) -> dict[str, float]:
            tokens = parts[part]
            assert tokens is not None
            return evaluate_text(model, tokens, self.length, device=device, ranks=ranks)

        loss = self.loss
        return Job(
            task=TASK.name,
            config=self.config,
            tokenizer=texts.tokenizer,
            samples=self.samples(),
            loss=loss,
            carried=self.carried(loss),
            measure=measure,
            per_epoch=self.per_epoch,
            seconds_per_step=self.seconds_per_step,
            seconds_at_end=self.seconds_at_end,
            has_test=texts.test is not None,
            look=None if sample is None else lambda model: _sample(model, texts.tokenizer, sample),
        )

    def held_out(self) -> HeldOut:
        return windows_of(self.texts.validation, self.length)

    def carried(self, loss: Callable[..., Any]) -> Carried | None:
        """What the loss hands from step to step."""
        return None

    def warnings(self, plan: dict[str, Any]) -> list[str]:
        told = []
        if plan["tokens"] < 10_000:
            told.append(f"{plan['tokens']:,} tokens are very little to learn from: expect babble")
        if plan["epochs"] > 10:
            told.append("the text will be read more than ten times: expect it to be learned by heart")
        return told

    def describe(self) -> dict[str, Any]:
        texts, training = self.texts, self.config.training
        return {
            "characters": self.config.data.characters,
            "tokens": len(texts.train),
            "validation_tokens": len(texts.validation),
            **({} if texts.test is None else {"test_tokens": len(texts.test)}),
            **self.common_facts(self.length, training.steps * training.batch * self.length / len(texts.train)),
        }


def _plan(
    task: Generate,
    request: Request,
    texts: Texts,
    tokenizer_config: TokenizerConfig | None,
    start: Start | None,
    ranks: Ranks,
) -> GenerateConfig:
    """Sizes by the ladder or by where it starts, what the user set on top, then the number of steps by measuring."""
    minutes = request.minutes if request.steps or request.epochs or request.minutes else MINUTES
    speed = ranks.agree(planning.machine_speed(), torch.device(request.device))
    sizes = task.sizes(speed * 60 * (minutes or MINUTES), texts)
    data = texts.source.config
    fresh = start is None or isinstance(start, WordStart)  # but for its table of tokens
    if fresh:
        family, fields = preset(request.model or task.family)
        model = ModelConfig.pick({"kind": family, **fields, "vocab_size": texts.tokenizer.vocab_size})
        planned = {**sizes.model} | (start.sizes if isinstance(start, WordStart) else {})
        model = request.apply("model", model.override({} if fields else planned))
    else:
        assert start is not None
        model = request.apply("model", start.model)
        if model.context is not None:
            data = data.override({"length": data.length or LENGTH})
    if start is not None:
        start.build(model)  # refuses settings that its weights do not fit
    if model.context is None and data.length is None:
        data = data.override({"length": sizes.length})
    longest = model.context or sizes.length
    batch = max(1, sizes.step_tokens // min(longest, data.length or longest))
    training = planning.first_training(request, batch, ranks, minutes, sizes.learning if fresh else GENTLE)
    training = planning.sharded_if_needed(training, model, ranks)
    freeze(model.skeleton(), training.freeze)  # refuses more layers than there are
    config = GenerateConfig(model=model, tokenizer=tokenizer_config, data=data, training=training, start=request.start)
    reading = task.reading(config, texts)
    pieces = planning.Pieces(reading.per_epoch, reading.seconds_per_step, reading.seconds_at_end)
    return config.override({"training": planning.with_steps(training, request, pieces, ranks)})


def _sample(model: nn.Module, tokenizer: Tokenizer, prompt: str) -> dict[str, Any]:
    """What the model writes as it stands."""
    text = generate(model, tokenizer, [prompt], GenerationConfig(max_tokens=60))[0].text
    return {"event": "sample", "prompt": prompt, "text": text}
