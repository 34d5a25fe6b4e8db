"""Counting instead of learning: a text in, a run directory with a count model out.

The same flow as for a model that is trained in steps, but there is one step: everything is counted at once. A run that
was stopped before its end has nothing to go on from; it is counted anew, and ends with the same bytes.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

import numpy as np
import torch
from torch import nn

from weft.checkpoints import Checkpoint, RunDirectory, load_newest, save_checkpoint
from weft.errors import ConfigError, UnsupportedError
from weft.generation import GenerationConfig, generate
from weft.models import ModelConfig, NGramConfig, preset
from weft.models.ngram import NGram
from weft.models.ngram_counts import Counted, counted
from weft.models.ngram_tables import Tables
from weft.tasks.environment import memory_in_use, usual_threads
from weft.tasks.evaluation import evaluate_text
from weft.tasks.generate import Generate, GenerateConfig
from weft.tasks.job import Job, Report
from weft.tasks.overlap import overlap_warnings
from weft.tasks.preparation import Texts, learned_from, tokenised
from weft.tasks.request import Request
from weft.tasks.run import Run
from weft.tasks.sources import DataConfig, check_unchanged, read_source
from weft.tasks.start import Start
from weft.tasks.task import Prepared
from weft.tasks.vocabulary import tokenizer_fields
from weft.text import Tokenizer, TokenizerConfig
from weft.training import Outcome, Ranks, TrainingConfig
from weft.training.resume import check_identity
from weft.training.stopping import StopRequest
from weft.training.trainer import Progress

BYTES_COUNTING, BYTES_KEPT = 60, 24  # for each token of the text while it is counted; for each n-gram


class GenerateCounts(Generate):
    """Say how likely each next token is by how often it came, and so write."""

    family = "ngram"
    families = ("ngram",)

    def check(self, request: Request) -> None:
        if request.start is not None:
            raise ConfigError(
                f"--from {request.start}: a count model cannot be trained further",
                expected="none: it is counted from the text alone",
            )
        if request.freeze is not None:
            raise ConfigError(f"--freeze {request.freeze} for a count model", expected="none: it has no layers")
        super().check(request)
        model = request.apply("model", NGramConfig(vocab_size=512, **preset(request.model or self.family)[1]))
        if not model.smoothing.counts:
            raise ConfigError(
                f"model.smoothing.kind = {model.smoothing.kind}", expected="a way to smooth counts, such as kneser-ney"
            )

    def check_start(self, run: Run) -> None:
        raise UnsupportedError(f"{run.directory.path} is a count model", expected="nothing to begin counting from")

    def prepare(self, request: Request, start: Start | None, ranks: Ranks, report: Report) -> Counting:
        if ranks.world > 1:
            raise UnsupportedError("a count model under torchrun", expected="one process: `weft train` alone")
        source = read_source(request.data_config(DataConfig))
        for text in overlap_warnings(source):
            report({"event": "warning", "text": text})
        fields = tokenizer_fields(request.tokenizer, source.train.characters)
        tokenizer_config = request.apply("tokenizer", TokenizerConfig.pick(fields))
        tokenizer = learned_from(tokenizer_config, source, report)
        texts = tokenised(source, tokenizer, report)
        family, sizes = preset(request.model or self.family)
        needed = {"vocab_size": tokenizer.vocab_size, "end": tokenizer.end}
        model = request.apply("model", ModelConfig.pick({"kind": family, **sizes, **needed}))
        threads = request.threads or usual_threads()
        once = TrainingConfig(steps=1, batch=1, seed=request.seed, threads=threads, device=request.device)
        training = request.training_config(once).override({"steps": 1, "batch": 1})
        config = GenerateConfig(model=model, tokenizer=tokenizer_config, data=texts.source.config, training=training)
        return Counting(config, texts)

    def reopen(self, config: GenerateConfig, run: RunDirectory, report: Report) -> Counting:
        source = read_source(config.data)
        check_unchanged(config.data, source.config)
        return Counting(config, tokenised(source, Tokenizer.load(run.tokenizer_file), report))


TASK = GenerateCounts()


@dataclass
class Counting(Prepared):
    """Texts as tokens, to be counted."""

    config: GenerateConfig
    texts: Texts

    @property
    def tokenizer(self) -> Tokenizer:  # type: ignore[override]
        return self.texts.tokenizer

    @property
    def model(self) -> NGramConfig:
        assert isinstance(self.config.model, NGramConfig)
        return self.config.model

    @property
    def loss(self) -> Callable[..., Any]:
        return _no_steps

    def samples(self) -> Callable[[np.ndarray], Any]:
        return _no_steps

    @property
    def length(self) -> int:
        return self.model.order

    @property
    def judged_tokens(self) -> int:
        return self.texts.judged

    def seconds_per_step(self) -> float:
        return 0.0

    def seconds_at_end(self) -> float:
        return 0.0

    def job(self, sample: str | None = None) -> Job:
        texts = self.texts
        parts = {"validation": texts.validation, "test": texts.test}

        def measure(model: nn.Module, part: str, ranks: Ranks) -> dict[str, float]:
            tokens = parts[part]
            assert tokens is not None
            return evaluate_text(model, tokens, self.length, device=torch.device("cpu"), ranks=ranks)

        return Job(
            task=TASK.name,
            config=self.config,
            tokenizer=texts.tokenizer,
            samples=self.samples(),
            loss=self.loss,
            measure=measure,
            per_epoch=1,
            seconds_per_step=self.seconds_per_step,
            seconds_at_end=self.seconds_at_end,
            most=1,
            has_test=texts.test is not None,
            look=None if sample is None else lambda model: _sample(model, texts.tokenizer, sample),
            find=self.find,
        )

    def warnings(self, plan: dict[str, Any]) -> list[str]:
        few = plan["tokens"] < 10_000
        return [f"{plan['tokens']:,} tokens are very little to learn from: expect babble"] if few else []

    def describe(self) -> dict[str, Any]:
        texts, model = self.texts, self.model
        count = len(texts.train)
        return {
            "characters": self.config.data.characters,
            "tokens": count,
            "validation_tokens": len(texts.validation),
            **({} if texts.test is None else {"test_tokens": len(texts.test)}),
            "tokenizer": texts.tokenizer.kind,
            "vocab_size": texts.tokenizer.vocab_size,
            "model": model.kind,
            "order": model.order,
            "smoothing": model.smoothing.kind,
            "parameters": None,  # as many as are found
            "memory": memory_in_use() + count * (BYTES_COUNTING + BYTES_KEPT * model.order),  # at most
            "flops": None,
            "steps": 1,
        }

    # -- the one step -------------------------------------------------------------------------

    def find(self, run: RunDirectory, report: Report) -> tuple[nn.Module, Outcome]:
        """Count, smooth, measure, and write all of it; a finished run is opened as it is."""
        identity = self.config.to_dict()
        identity["data"].pop("test")  # its content is in the fingerprint
        done = load_newest(run.checkpoints)
        if done is not None and done.state["progress"]["finished"]:
            check_identity(done.state["identity"], identity)
            model = self.model.with_weights(self.model.as_used(run.read_model()))
            return model, Outcome(Progress(**done.state["progress"]), "finished")
        began = time.perf_counter()
        with StopRequest() as stop:
            try:
                levels = self._counted(report, stop)
            except _StoppedError:
                return self.model.build(), Outcome(Progress(), "signal")
            model, values = self._smoothed(levels)
            run.write_model(model.state_dict())
            values |= evaluate_text(model, self.texts.validation, self.length, device=torch.device("cpu"))
            self._warn(model, values, report)
            progress = _progress(values)
            size = _log(run, values, time.perf_counter() - began)
            state = {"progress": asdict(progress), "metrics_bytes": size, "identity": identity}
            save_checkpoint(run.checkpoints, Checkpoint(1, {}, state))
            report({"event": "step", "total": 1, **_finite(values)})
        return model, Outcome(progress, "finished")

    def _counted(self, report: Report, stop: StopRequest) -> list[Counted]:
        order = self.model.order
        report({"event": "phase", "name": f"counting n-grams of 1 to {order} tokens" if order > 1 else "counting"})

        def told(done: int) -> None:
            if stop.requested:
                raise _StoppedError
            report({"event": "progress", "phase": "counting", "done": done, "total": order, "unit": "n-grams"})

        ids = self.texts.train.ids
        return list(counted(np.asarray(ids), order, self.model.vocab_size, self.model.end, told))

    def _smoothed(self, levels: list[Counted]) -> tuple[NGram, dict[str, Any]]:
        """The model, and what is known of it so far."""
        config = self.model
        held_out = np.asarray(self.texts.validation.ids[:ENOUGH])
        smoothing = config.smoothing.fitted(levels, held_out, config.end)
        tables = smoothing.tables(levels, config.end)
        total = len(self.texts.train)
        values = {
            "step": 1,
            "tokens": total,
            "loss": _nats_of_training(levels, tables) / total,
            "parameters": tables.size,
            "ngrams": [len(level.tokens) for level in levels],
            "smoothing": smoothing.to_dict(),
        }
        return config.with_tables(tables), values

    def _warn(self, model: NGram, values: dict[str, Any], report: Report) -> None:
        """An infinite loss is an outcome, and a hint."""
        if math.isfinite(values["validation_loss"]):
            return
        found = model.tables.probabilities(np.asarray(self.texts.validation.ids))[1:]
        never = (
            f"{int((found == 0).sum()):,} of {len(found):,} held-out tokens never came after what stands before them"
        )
        way = "try --set model.smoothing.kind=kneser-ney"
        report({"event": "warning", "text": f"{never}: {self.model.smoothing.kind} calls them impossible; {way}"})


ENOUGH = 200_000  # held-out tokens to choose a few numbers by


class _StoppedError(Exception):
    """Somebody asked to stop."""


def _no_steps(*_: Any) -> NoReturn:
    raise UnsupportedError("a step of training for a count model", expected="none: it is counted")


def _nats_of_training(levels: list[Counted], tables: Tables) -> float:
    """Of the text that was counted: each token by the longest of its n-grams."""
    total = 0.0
    for number, (level, table) in enumerate(zip(levels, tables.levels, strict=True)):
        longest = level.counts
        if number + 1 < len(levels):
            above = levels[number + 1]
            longer = np.bincount(above.shorter, weights=above.counts, minlength=len(longest))
            longest = longest - longer.astype(np.int64)
        used = longest > 0
        total -= float((longest[used] * np.log(table.probability[used])).sum())
    return total


def _progress(values: dict[str, Any]) -> Progress:
    measured = {name: values[name] for name in ("validation_loss", "bits_per_byte", "parameters")}
    return Progress(
        step=1,
        tokens=values["tokens"],
        best=values["validation_loss"],
        goal=-values["validation_loss"],
        best_step=1,
        finished=True,
        metrics=measured,
        best_metrics=measured,
    )


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """What JSON can say: an infinite loss is left out."""
    return {k: v for k, v in values.items() if not isinstance(v, float) or math.isfinite(v)}


def _log(run: RunDirectory, values: dict[str, Any], seconds: float) -> int:
    """The one line of metrics.jsonl, and of timing.jsonl; what is infinite is null there. Gives its size."""
    line = json.dumps(dict.fromkeys(values) | _finite(values)) + "\n"
    run.write_file(run.metrics_file.name, line)
    run.write_file(run.timing_file.name, json.dumps({"step": 1, "seconds": round(seconds, 6)}) + "\n")
    return len(line.encode())


def _sample(model: nn.Module, tokenizer: Tokenizer, prompt: str) -> dict[str, Any]:
    """What the model writes."""
    text = generate(model, tokenizer, [prompt], GenerationConfig(max_tokens=60))[0].text
    return {"event": "sample", "prompt": prompt, "text": text}
