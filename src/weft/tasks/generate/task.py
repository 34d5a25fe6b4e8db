"""Training a model that writes: text in, a run directory out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from weft.data import Windows
from weft.errors import ConfigError, UnsupportedError
from weft.generation import GenerationConfig, Weights, generate
from weft.models import Budget, CausalLM, ModelConfig, Sizing, WordVectorTable, preset, sizing_of
from weft.models.capabilities import Capability
from weft.objectives import causal_loss
from weft.tasks import planning
from weft.tasks.experiment import NO_ORIGIN, Experiment, Origin
from weft.tasks.generate.evaluation import evaluate_run, evaluate_text
from weft.tasks.generate.examples import collect_texts, continued
from weft.tasks.generate.overlap import overlap_warnings
from weft.tasks.generate.text_generator import TextGenerator
from weft.tasks.generate.words import GenerateWords
from weft.tasks.preparation import TokenisedSplits, tokenised, train_tokenizer
from weft.tasks.run import Run
from weft.tasks.settings import RunConfig
from weft.tasks.sources import DataConfig, Source, are_tables, check_unchanged, read_source
from weft.tasks.start import DEFAULT_WINDOW_TOKENS, FINE_TUNING_RATES, WordStart
from weft.tasks.task import Task
from weft.tasks.validation_inputs import ValidationInputs, windows_of
from weft.tasks.vocabulary import tokenizer_fields
from weft.tasks.words import Words
from weft.text import Tokenizer, TokenizerConfig
from weft.training import Ranks
from weft.training.freezing import freeze

DEFAULT_MINUTES = 5.0  # when the user says nothing


class GenerateConfig(RunConfig):
    """All settings of a run that learns to write."""

    data: DataConfig


class Generate(Task):
    """Predict the next token of a text, and so learn to write."""

    name = "generate"
    capabilities: ClassVar[tuple[Capability, ...]] = (CausalLM,)
    settings = GenerateConfig
    writes = True
    words: ClassVar[Words] = GenerateWords()
    opens = TextGenerator
    turn: ClassVar[int | None] = 2
    is_default = True
    evaluated_by_text = True
    rounds = True

    def recognises(self, paths: Sequence[str], columns: Collection[str]) -> bool:
        """Anything that is no table; and .txt, whatever is in it."""
        return not are_tables(paths) or all(Path(path).suffix.lower() == ".txt" for path in paths)

    def check_family(self, name: str, family: str) -> None:
        if family not in self.families:
            raise UnsupportedError(
                f"{name} does not continue a text",
                expected=f"one of {', '.join(self.families)}",
                advice=f"--model {self.family}",
            )

    def check_tokenizer(self, config: TokenizerConfig) -> None:
        """What a model writes is read by people: its tokens must spell text exactly."""
        if not config.gives_text_back:
            exact = [
                kind for kind, entry in TokenizerConfig.registry.items() if getattr(entry, "gives_text_back", False)
            ]
            raise ConfigError(
                f"the tokenizer {config.kind!r} is not for writing: it does not give text back",
                expected=f"one of {', '.join(exact)}",
            )

    def check_start(self, run: Run) -> None:
        if WordVectorTable in run.model_config.provides:  # word vectors are a beginning too
            return
        run.check_writes()

    def plan(self, origin: Origin) -> TextExperiment:
        request, start, report = origin.asked, origin.start, origin.report
        source = read_source(request.data_config(DataConfig))
        for text in overlap_warnings(source) if origin.ranks.is_first else ():
            report({"event": "warning", "text": text})
        tokenizer_config = None
        if start is None:
            fields = tokenizer_fields(request.tokenizer, source.train.characters)
            tokenizer_config = request.apply("tokenizer", TokenizerConfig.from_config(fields))
            tokenizer = train_tokenizer(tokenizer_config, source, report)
        else:
            tokenizer = start.tokenizer
        texts = tokenised(source, tokenizer, report)
        report({"event": "phase", "name": "planning"})
        return _plan(self, origin, texts, tokenizer_config)

    def reopen(self, config: GenerateConfig, origin: Origin) -> TextExperiment:
        return self.reading(config, reopen_texts(config, origin), origin)

    def read_data(self, config: DataConfig) -> Source:
        return read_source(config)

    def evaluate(self, run: Run, *data: str, weights: Weights) -> dict[str, Any]:
        return evaluate_run(run, *data, weights=weights)

    def examples(self, run: Run, data: Callable[[], Any]) -> dict[str, Any]:
        return collect_texts(run, data)

    def sample(self, run: Run) -> dict[str, str]:
        return continued(run)

    # -- what differs between families --------------------------------------------------------

    def reading(self, config: GenerateConfig, texts: TokenisedSplits, origin: Origin) -> TextExperiment:
        """How the texts are read."""
        return TextExperiment(config, texts, origin)

    def sizes(self, sizing: Sizing, flops: float, texts: TokenisedSplits) -> Sizes:
        """What suits so many operations of training."""
        size = sizing.choose(Budget(flops))
        return Sizes(size.model, size.length, size.batch * size.length, sizing.training)


@dataclass(frozen=True)
class Sizes:
    """Fields of a model named by its family alone; tokens that are read at a time and in a step; how it learns."""

    model: Mapping[str, Any]
    length: int
    step_tokens: int
    learning: Mapping[str, Any]


TASK = Generate()


def reopen_texts(config: GenerateConfig, origin: Origin) -> TokenisedSplits:
    """Those of a run that was begun, which may not have changed."""
    assert origin.run is not None
    source = read_source(config.data)
    check_unchanged(config.data, source.config)
    return tokenised(source, Tokenizer.load(origin.run.tokenizer_file), origin.report)


@dataclass
class TextExperiment(Experiment):
    """Texts as tokens, read in windows."""

    task_name = TASK.name
    config: GenerateConfig
    texts: TokenisedSplits
    origin: Origin = NO_ORIGIN

    def loss(self, model: nn.Module, batch: Any) -> tuple[Any, ...]:
        return causal_loss(model, batch)

    @property
    def tokenizer(self) -> Tokenizer:  # type: ignore[override]
        return self.texts.tokenizer

    @property
    def length(self) -> int:
        """Tokens in a window."""
        longest = self.config.model.context or DEFAULT_WINDOW_TOKENS
        return min(longest, self.config.data.length or longest, len(self.texts.train) - 1)

    @cached_property
    def windows(self) -> Windows:
        return Windows(self.texts.train, self.length, self.config.training.seed)

    @property
    def per_epoch(self) -> int:
        return self.windows.per_epoch

    def samples(self, numbers: np.ndarray) -> Any:
        return torch.from_numpy(self.windows.batch(numbers))

    @property
    def evaluation_tokens(self) -> int:
        return self.texts.evaluated_tokens

    @property
    def has_test(self) -> bool:
        return self.texts.test is not None

    def measure(self, model: nn.Module, part: str, ranks: Ranks) -> dict[str, Any]:
        device = torch.device(self.config.training.device)
        return evaluate_text(model, self.texts.part(part), self.length, device=device, ranks=ranks)

    def look(self, model: nn.Module) -> dict[str, Any] | None:
        request = self.origin.request
        return None if request is None or request.sample is None else sample(model, self.tokenizer, request.sample)

    def validation_inputs(self) -> ValidationInputs:
        return windows_of(self.texts.validation, self.length)

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
    task: Generate, origin: Origin, texts: TokenisedSplits, tokenizer_config: TokenizerConfig | None
) -> TextExperiment:
    """Sizes by the ladder or by where it starts, what the user set on top, then the number of steps by measuring."""
    request, start, ranks = origin.asked, origin.start, origin.ranks
    minutes = request.minutes if request.steps or request.epochs or request.minutes else DEFAULT_MINUTES
    speed = ranks.agree(planning.machine_speed(), torch.device(request.device))
    data = texts.source.config
    fresh = start is None or isinstance(start, WordStart)  # but for its table of tokens
    family = preset(request.model or task.family)[0] if fresh or start is None else str(start.model.kind)
    sizes = task.sizes(sizing_of(family, task.capability(family)), speed * 60 * (minutes or DEFAULT_MINUTES), texts)
    if fresh:
        family, fields = preset(request.model or task.family)
        model = ModelConfig.from_config({"kind": family, **fields, "vocab_size": texts.tokenizer.vocab_size})
        planned = {**sizes.model} | (start.sizes if isinstance(start, WordStart) else {})
        model = request.apply("model", model.override({} if fields else planned))
    else:
        assert start is not None
        model = request.apply("model", start.model)
        if model.context is not None:
            data = data.override({"length": data.length or DEFAULT_WINDOW_TOKENS})
    if start is not None:
        start.build(model)  # refuses settings that its weights do not fit
    if model.context is None and data.length is None:
        data = data.override({"length": sizes.length})
    longest = model.context or sizes.length
    batch = max(1, sizes.step_tokens // min(longest, data.length or longest))
    training = planning.first_training(request, batch, ranks, minutes, sizes.learning if fresh else FINE_TUNING_RATES)
    training = planning.sharded_if_needed(training, model, ranks)
    freeze(model.skeleton(), training.freeze)  # refuses more layers than there are
    config = GenerateConfig(model=model, tokenizer=tokenizer_config, data=data, training=training, start=request.start)
    reading = task.reading(config, texts, origin)
    pieces = planning.Pieces(reading.per_epoch, reading.seconds_per_step, reading.seconds_at_end)
    training = planning.with_steps(training, request, pieces, ranks)
    return replace(reading, config=config.override({"training": training}))


def sample(model: nn.Module, tokenizer: Tokenizer, prompt: str) -> dict[str, Any]:
    """What the model writes now."""
    text = generate(model, tokenizer, [prompt], GenerationConfig(max_tokens=60))[0].text
    return {"event": "sample", "prompt": prompt, "text": text}
