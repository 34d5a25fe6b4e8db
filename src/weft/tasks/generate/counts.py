"""Counting instead of learning: a text in, a run directory with a count model out.

The same flow as for a model that is trained in steps, but there is one step: everything is counted at once. A run that
was stopped before its end cannot be resumed; it is counted anew, and ends with the same bytes.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

import numpy as np
from torch import nn

from weft.checkpoints import Checkpoint, RunDirectory, load_newest, save_checkpoint
from weft.errors import ConfigError, UnsupportedError
from weft.models import LearnsByCounting, ModelConfig, preset
from weft.tasks.environment import memory_in_use, usual_threads
from weft.tasks.experiment import Origin
from weft.tasks.generate.overlap import overlap_warnings
from weft.tasks.generate.task import Generate, GenerateConfig, TextExperiment, reopen_texts
from weft.tasks.generate.words import CountWords
from weft.tasks.preparation import tokenised, train_tokenizer
from weft.tasks.recording import Report
from weft.tasks.request import Request
from weft.tasks.run import Run
from weft.tasks.sources import DataConfig, read_source
from weft.tasks.vocabulary import tokenizer_fields
from weft.tasks.watching import SoftmaxHealthLog
from weft.text import TokenizerConfig
from weft.training import ALONE, Outcome, TrainingConfig
from weft.training.resume import check_identity
from weft.training.stopping import StopRequest
from weft.training.trainer import Progress

BYTES_PER_COUNTED_TOKEN, BYTES_PER_NGRAM = 60, 24  # for each token of the text while it is counted; for each n-gram


class GenerateCounts(Generate):
    """Say how likely each next token is by how often it came, and so write."""

    capabilities = (LearnsByCounting,)
    words = CountWords()
    turn = None

    def check(self, request: Request) -> None:
        if request.start is not None:
            raise ConfigError(
                f"--from {request.start}: a count model cannot be trained further",
                expected="none: it is counted from the text alone",
            )
        if request.freeze is not None:
            raise ConfigError(f"--freeze {request.freeze} for a count model", expected="none: it has no layers")
        super().check(request)
        family, sizes = preset(request.model or self.family)
        model: Any = request.apply("model", ModelConfig.from_config({"kind": family, "vocab_size": 512, **sizes}))
        if not model.smoothing.counts:
            raise ConfigError(
                f"model.smoothing.kind = {model.smoothing.kind}", expected="a way to smooth counts, such as kneser-ney"
            )

    def check_start(self, run: Run) -> None:
        raise UnsupportedError(f"{run.directory.path} is a count model", expected="nothing to begin counting from")

    def plan(self, origin: Origin) -> Counting:
        request, report = origin.asked, origin.report
        if origin.ranks.world > 1:
            raise UnsupportedError("a count model under torchrun", expected="one process: `weft train` alone")
        source = read_source(request.data_config(DataConfig))
        for text in overlap_warnings(source):
            report({"event": "warning", "text": text})
        fields = tokenizer_fields(request.tokenizer, source.train.characters)
        tokenizer_config = request.apply("tokenizer", TokenizerConfig.from_config(fields))
        tokenizer = train_tokenizer(tokenizer_config, source, report)
        texts = tokenised(source, tokenizer, report)
        family, sizes = preset(request.model or self.family)
        needed = {"vocab_size": tokenizer.vocab_size, "end": tokenizer.end}
        model = request.apply("model", ModelConfig.from_config({"kind": family, **sizes, **needed}))
        threads = request.threads or usual_threads()
        once = TrainingConfig(steps=1, batch=1, seed=request.seed, threads=threads, device=request.device)
        training = request.training_config(once).override({"steps": 1, "batch": 1})
        config = GenerateConfig(model=model, tokenizer=tokenizer_config, data=texts.source.config, training=training)
        return Counting(config, texts, origin)

    def reopen(self, config: GenerateConfig, origin: Origin) -> Counting:
        return Counting(config, reopen_texts(config, origin), origin)


TASK = GenerateCounts()


@dataclass
class Counting(TextExperiment):
    """Texts as tokens, to be counted."""

    @property
    def model(self) -> Any:
        return self.config.model

    def loss(self, model: nn.Module, batch: Any) -> NoReturn:
        raise UnsupportedError("a step of training for a count model", expected="none: it is counted")

    def samples(self, numbers: np.ndarray) -> NoReturn:
        raise UnsupportedError("a batch for a count model", expected="none: all of its text is counted")

    @property
    def length(self) -> int:
        return self.model.order

    @property
    def per_epoch(self) -> int:
        return 1

    def seconds_per_step(self) -> float:
        return 0.0

    def seconds_at_end(self) -> float:
        return 0.0

    def check_extends(self, run: RunDirectory) -> NoReturn:
        super().check_extends(run)
        raise UnsupportedError(
            f"{run.path} is finished for good: all of its text is counted",
            expected="nothing to train further",
            advice="for more text, train a new run",
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
            "memory": memory_in_use() + count * (BYTES_PER_COUNTED_TOKEN + BYTES_PER_NGRAM * model.order),  # at most
            "flops": None,
            "steps": 1,
        }

    # -- the one step -------------------------------------------------------------------------

    def learn(self, run: RunDirectory, watch: SoftmaxHealthLog | None) -> tuple[nn.Module, Outcome]:
        """Count, smooth, measure, and write all of it; a finished run is opened as it is."""
        identity, report = self.identity(), self.origin.report
        done = load_newest(run.checkpoints)
        if done is not None and done.state["progress"]["finished"]:
            check_identity(done.state["identity"], identity)
            model = self.model.with_weights(self.model.as_used(run.read_model()))
            return model, Outcome(Progress(**done.state["progress"]), "finished")
        began = time.perf_counter()
        with StopRequest() as stop:
            try:
                model, values = self._counted(report, stop)
            except _StoppedError:
                return self.model.build(), Outcome(Progress(), "signal")
            run.write_model(model.state_dict())
            values |= self.measure(model, "validation", ALONE)
            self._warn(model, values, report)
            progress = _progress(values)
            size = _log(run, values, time.perf_counter() - began)
            state = {"progress": asdict(progress), "metrics_bytes": size, "identity": identity}
            save_checkpoint(run.checkpoints, Checkpoint(1, {}, state))
            report({"event": "step", "total": 1, **_finite(values)})
        return model, Outcome(progress, "finished")

    def _counted(self, report: Report, stop: StopRequest) -> tuple[nn.Module, dict[str, Any]]:
        """The model, and what is known of it so far."""
        order, texts = self.model.order, self.texts
        report({"event": "phase", "name": f"counting n-grams of 1 to {order} tokens" if order > 1 else "counting"})

        def report_progress(done: int) -> None:
            if stop.requested:
                raise _StoppedError
            report({"event": "progress", "phase": "counting", "done": done, "total": order, "unit": "n-grams"})

        model = self.model.build()
        found = model.count(texts.train.ids, texts.validation.ids, report_progress)
        return model, {"step": 1, "tokens": len(texts.train), **found}

    def _warn(self, model: Any, values: dict[str, Any], report: Report) -> None:
        """An infinite loss is an outcome, and a hint."""
        if math.isfinite(values["validation_loss"]):
            return
        found = model.tables.probabilities(np.asarray(self.texts.validation.ids))[1:]
        never = (
            f"{int((found == 0).sum()):,} of {len(found):,} validation tokens never came after the tokens before them"
        )
        way = "try --set model.smoothing.kind=kneser-ney"
        report({"event": "warning", "text": f"{never}: {self.model.smoothing.kind} calls them impossible; {way}"})


class _StoppedError(Exception):
    """Somebody asked to stop."""


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
