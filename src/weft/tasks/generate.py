"""Training a model that writes: text in, a run directory out."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import nn

from weft.checkpoints import RunDirectory
from weft.data import Windows
from weft.errors import DataError
from weft.generation import GenerationConfig, generate
from weft.models import GPTConfig
from weft.objectives import causal_loss
from weft.tasks import planning
from weft.tasks.evaluation import evaluate_text
from weft.tasks.job import NO_FURTHER, Further, Job, Report, new_run, train_job
from weft.tasks.overlap import overlap_warnings
from weft.tasks.preparation import (
    GenerateConfig,
    Prepared,
    check_gives_text_back,
    check_model,
    check_writes,
    learned_tokenizer,
    tokenised,
)
from weft.tasks.request import Request
from weft.tasks.sources import check_unchanged, read_source, short_name
from weft.tasks.start import read_start
from weft.tasks.vocabulary import tokenizer_fields
from weft.text import Tokenizer, TokenizerConfig
from weft.training import Outcome, Ranks, ranks_from_environment


def train_generate(request: Request, report: Report) -> tuple[RunDirectory | None, Outcome | None]:
    """Plan, write the run directory, train. `report` is told each event."""
    request.check()
    if request.start is None:
        check_writes(request.model)
        check_gives_text_back(request.apply("tokenizer", TokenizerConfig.pick(request.tokenizer or "bpe")))
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
    job = _job(prepared, request.sample)
    check_model(config.model, texts.tokenizer, "the plan")
    run = new_run(job, request.out, short_name(config.data.train), ranks)
    return run, train_job(run, job, ranks, report, request=request, start=start)


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
    check_model(config.model, prepared.texts.tokenizer, str(run.config_file))
    job = _job(prepared)
    if further != NO_FURTHER and ranks.is_first:
        further.extend(run, job)
    ranks.wait()
    return run, train_job(run, job, ranks, report)


def _job(prepared: Prepared, prompt: str | None = None) -> Job:
    """What there is to do; a `prompt` is what the model is to write on from, before and after."""
    config, texts = prepared.config, prepared.texts
    model, training = config.model, config.training
    assert isinstance(model, GPTConfig)
    parts = {"validation": texts.validation, "test": texts.test}

    def measure(model: nn.Module, part: str, ranks: Ranks) -> dict[str, float]:
        tokens = parts[part]
        assert tokens is not None
        return evaluate_text(model, tokens, prepared.length, device=torch.device(training.device), ranks=ranks)

    return Job(
        task="generate",
        config=config,
        tokenizer=texts.tokenizer,
        samples=prepared.samples(),
        loss=causal_loss,
        measure=measure,
        per_epoch=Windows(texts.train, prepared.length, 0).per_epoch,
        seconds_per_step=lambda: planning.seconds_per_step(model, training, prepared.samples()),
        seconds_at_end=lambda: planning.seconds_to_evaluate(model, texts.judged, planning.machine_speed()),
        has_test=texts.test is not None,
        look=None if prompt is None else lambda model: _sample(model, texts.tokenizer, prompt),
    )


def _sample(model: nn.Module, tokenizer: Tokenizer, prompt: str) -> dict[str, Any]:
    """What the model writes as it stands."""
    text = generate(model, tokenizer, [prompt], GenerationConfig(max_tokens=60))[0].text
    return {"event": "sample", "prompt": prompt, "text": text}
