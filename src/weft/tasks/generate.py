"""Training a model that writes: text in, a run directory out."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from weft.checkpoints import RunDirectory, load_newest
from weft.checkpoints.files import read_json
from weft.data import TokenFile, Windows
from weft.errors import DataError
from weft.generation import GenerationConfig, generate
from weft.models import GPTConfig
from weft.objectives import causal_loss
from weft.tasks import planning
from weft.tasks.environment import environment, run_readme
from weft.tasks.evaluation import evaluate_text
from weft.tasks.overlap import overlap_warnings
from weft.tasks.preparation import GenerateConfig, Prepared, Report, check_model, learned_tokenizer, tokenised
from weft.tasks.request import Request
from weft.tasks.sources import check_unchanged, read_source, short_name
from weft.tasks.start import Start, read_start
from weft.tasks.vocabulary import tokenizer_fields
from weft.text import Tokenizer, TokenizerConfig
from weft.training import ALONE, Outcome, Ranks, Trainer, ranks_from_environment
from weft.training.pace import Pace
from weft.training.resume import load_model_tensors

TEST_FILE = "test.json"


def train_generate(request: Request, report: Report) -> tuple[RunDirectory | None, Outcome | None]:
    """Plan, write the run directory, train. `report` is told each event."""
    request.check()
    ranks = ranks_from_environment(request.device)
    torch.set_num_threads(request.threads or os.cpu_count() or 1)
    report({"event": "phase", "name": "reading"})
    start = read_start(request.start) if request.start else None
    source = read_source(request.data_config())
    for text in overlap_warnings(source) if ranks.is_first else ():
        report({"event": "warning", "text": text})
    tokenizer_config = None
    if start is None:
        fields = tokenizer_fields(request.tokenizer, source.train.characters)
        tokenizer_config = request.apply("tokenizer", TokenizerConfig.pick(fields))
        tokenizer = learned_tokenizer(tokenizer_config, source, report)
    else:
        tokenizer = start.tokenizer
    texts = tokenised(source, tokenizer, report)
    report({"event": "phase", "name": "planning"})
    config = planning.plan(request, texts, tokenizer_config, start, ranks)
    prepared = Prepared(config, texts)
    description = planning.describe(prepared)
    for text in planning.warnings(description):
        report({"event": "warning", "text": text})
    report({"event": "plan", **description})
    if request.dry_run:
        return None, None
    path = (
        Path(request.out)
        if request.out
        else RunDirectory.next_free(Path("runs"), f"generate-{short_name(config.data.train)}")
    )
    run = RunDirectory(path)
    if ranks.is_first:
        run = RunDirectory.create(path)
        texts.tokenizer.save(run.tokenizer_file)
        run.write_json("environment.json", environment())
        run.write_file("README.md", run_readme(run.path))
        run.write_config({"task": "generate", **config.to_dict()})
    ranks.wait()
    return run, _train(run, prepared, ranks, report, request=request, start=start)


@dataclass(frozen=True)
class Further:
    """How much further a finished run is trained; all None: not at all."""

    minutes: float | None = None
    steps: int | None = None
    epochs: float | None = None

    def count(self, prepared: Prepared) -> int:
        """In steps."""
        training, model = prepared.config.training, prepared.config.model
        if self.steps is not None:
            return self.steps
        if self.epochs is not None:
            return max(
                1, round(self.epochs * Windows(prepared.texts.train, prepared.length, 0).per_epoch / training.batch)
            )
        assert self.minutes is not None and isinstance(model, GPTConfig)
        each = planning.seconds_per_step(model, training, prepared.samples())
        return max(1, int(60 * self.minutes / each))


NO_FURTHER = Further()


def resume_generate(path: str, report: Report, further: Further = NO_FURTHER) -> tuple[RunDirectory, Outcome]:
    """Go on from the newest sound checkpoint; a finished run can be trained `further`, with a new curve."""
    run = RunDirectory.open(path)
    raw = run.read_config()
    raw.pop("task", None)
    if "origin" in raw:
        raise DataError(
            f"{path} was imported, not trained here: there is nothing to resume",
            advice=f"train it on your own text:  weft train book.txt --from {path}",
        )
    config = GenerateConfig.from_dict(raw)
    ranks = ranks_from_environment(config.training.device)
    torch.set_num_threads(config.training.threads)
    report({"event": "phase", "name": "reading"})
    source = read_source(config.data)
    check_unchanged(config.data, source.config)
    prepared = Prepared(config, tokenised(source, Tokenizer.load(run.tokenizer_file), report))
    if further != NO_FURTHER and ranks.is_first:
        checkpoint = load_newest(run.checkpoints)
        if checkpoint is None or not checkpoint.state["progress"]["finished"]:
            raise DataError(
                f"{path} is not finished", expected="a finished run to train further", advice="resume it first"
            )
        steps = checkpoint.step + further.count(prepared)
        run.add_event({"event": "extend", "step": checkpoint.step, "steps": steps})
    ranks.wait()
    return run, _train(run, prepared, ranks, report)


def _train(
    run: RunDirectory,
    prepared: Prepared,
    ranks: Ranks,
    report: Report,
    *,
    request: Request | None = None,
    start: Start | None = None,
) -> Outcome:
    """A new run, of a `request`, is fitted to the clock on the way; a resumed one keeps its plan as it is."""
    settings, texts, config = prepared.config.training, prepared.texts, prepared.config.model
    check_model(config, texts.tokenizer, str(run.config_file))
    report({"event": "phase", "name": "training"})
    with run.locked() if ranks.is_first else nullcontext():
        torch.manual_seed(settings.seed)
        model = _model_to_train(run, prepared.config, start).to(settings.device)
        pace = None
        if settings.minutes is not None and request is not None:
            assert isinstance(config, GPTConfig)
            evaluation = planning.seconds_to_evaluate(config, texts.judged, planning.machine_speed())
            pace = Pace(request.started + 60 * settings.minutes - evaluation)

        def evaluate(tokens: TokenFile) -> dict[str, float]:
            # a sharded model runs on all ranks at once, so they cannot share the work
            shared = ALONE if settings.sharded else ranks
            return evaluate_text(model, tokens, prepared.length, device=torch.device(settings.device), ranks=shared)

        trainer = Trainer(
            model,
            settings=settings,
            run=run,
            samples=prepared.samples(),
            loss=causal_loss,
            evaluate=lambda: evaluate(texts.validation),
            on_step=lambda values: report({"event": "step", "total": trainer.schedule.total, **values}),
            ranks=ranks,
            pace=pace,
        )
        trainer.saves_start = prepared.config.start is not None
        trainer.identity = prepared.config.to_dict()
        trainer.identity["data"].pop("test")  # its content is in the fingerprint, and older runs have no such field
        prompt = request.sample if request is not None and ranks.world == 1 else None
        if prompt is not None:
            report(_sample(model, texts.tokenizer, prompt) | {"when": "before"})
        outcome = trainer.train()
        if prompt is not None and outcome.stopped_by != "signal":
            load_model_tensors(trainer, run.read_model())
            report(_sample(model, texts.tokenizer, prompt) | {"when": "after"})
        if texts.test is not None and outcome.stopped_by != "signal":
            report({"event": "phase", "name": "testing", "step": outcome.progress.best_step})
            load_model_tensors(trainer, run.read_model())  # the best weights; those in memory may be later
            metrics = evaluate(texts.test)
            found = {"step": outcome.progress.best_step, "test_loss": metrics["validation_loss"]}
            if ranks.is_first:
                run.write_json(TEST_FILE, found | {"bits_per_byte": metrics["bits_per_byte"]})
        return outcome


def _sample(model: nn.Module, tokenizer: Tokenizer, prompt: str) -> dict[str, Any]:
    """What the model writes as it stands."""
    text = generate(model, tokenizer, [prompt], GenerationConfig(max_tokens=60))[0].text
    return {"event": "sample", "prompt": prompt, "text": text}


def _model_to_train(run: RunDirectory, config: GenerateConfig, start: Start | None) -> nn.Module:
    """With fresh weights, or those of the model it starts from; once there is a checkpoint, that one counts."""
    if config.start is None or load_newest(run.checkpoints) is not None:
        return config.model.build()
    return (start or read_start(config.start)).build(config.model)


def final_metrics(run: RunDirectory, outcome: Outcome) -> dict[str, Any]:
    """How good the best weights are: on the test text if there is one, else on the held-out text."""
    progress = outcome.progress
    found = {
        "validation_loss": progress.best,
        "bits_per_byte": progress.best_metrics.get("bits_per_byte"),
        "measured_on": "validation",
    }
    if (run.path / TEST_FILE).exists():
        test = read_json(run.path / TEST_FILE)
        if test["step"] == progress.best_step:  # else it is of weights that were best before
            found |= {"test_loss": test["test_loss"], "bits_per_byte": test["bits_per_byte"], "measured_on": "test"}
    return found
