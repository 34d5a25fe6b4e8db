"""Training from the first word to the last, the same for every task: begin, resume, train further."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from weft.checkpoints import RunDirectory
from weft.errors import DataError
from weft.models import preset
from weft.models.attention_fits import sees_everything
from weft.tasks.environment import usual_threads
from weft.tasks.job import NO_FURTHER, Further, Job, Report, new_run, train_job
from weft.tasks.preparation import check_model
from weft.tasks.purpose import has_attention
from weft.tasks.recording import Recording, reasons_of
from weft.tasks.request import Request
from weft.tasks.run import load
from weft.tasks.settings import read_settings
from weft.tasks.sources import DEMO, are_pictures, short_name
from weft.tasks.start import Start, read_start
from weft.tasks.task import Prepared, find_task
from weft.tasks.watching import Watch, nothing_to_watch, was_watched
from weft.training import Outcome, Ranks, ranks_from_environment


def train_task(request: Request, report: Report) -> tuple[RunDirectory | None, Outcome | None]:
    """Plan, write the run directory, train. `report` is told each event; a dry run gives (None, None)."""
    recording = Recording(report)
    prepared, start, ranks = prepare_task(request, recording)
    if request.dry_run:
        return None, None
    job = prepared.job(request.sample)
    check_model(prepared.config.model, prepared.tokenizer, "the plan", prepared.source_tokenizer)
    run = new_run(job, request.out, short_name(prepared.config.data.train), ranks)
    job = watched(job, prepared, run, ranks, recording) if request.watch else job
    if ranks.is_first:
        recording.begin(run, reasons_of(request, prepared))
    return run, train_job(run, job, ranks, recording, request=request, start=start)


def watched(job: Job, prepared: Prepared, run: RunDirectory, ranks: Ranks, report: Report) -> Job:
    """The same job, looked at while it is done; where there is nothing to see, that is said once."""
    model, training = job.config.model, job.config.training
    if not ranks.is_first:
        return job
    if job.find is not None or not has_attention(model):
        report(nothing_to_watch(model.kind))
        return job
    if training.sharded and ranks.world > 1:
        report({"event": "warning", "text": "--watch is left out: the weights are spread over several processes"})
        return job
    return replace(job, watch=Watch(run, prepared.held_out, report))


def prepare_task(request: Request, report: Report) -> tuple[Prepared, Start | None, Ranks]:
    """Check what was asked for, read the data and plan; writes nothing."""
    task = find_task(request.task, family_for(request))
    task.check(request)
    ranks = ranks_from_environment(request.device)
    torch.set_num_threads(request.threads or usual_threads())
    report({"event": "phase", "name": "reading"})
    start = read_start(request.start, task.check_start) if request.start else None
    prepared = task.prepare(request, start, ranks, report)
    description = prepared.describe()
    for text in (*prepared.warnings(description), *_needless(prepared)):
        report({"event": "warning", "text": text})
    report({"event": "plan", "task": task.name, **description})
    return prepared, start, ranks


def _needless(prepared: Prepared) -> list[str]:
    """A pattern that forbids nothing is full attention under another name."""
    attention = getattr(prepared.config.model, "attention", None)
    if prepared.tokenizer is None or attention is None:  # a picture has no length
        return []
    kind = sees_everything(attention, prepared.length)
    advice = "make its window smaller, or texts longer (--set model.max_length=…)"
    told = f"attention.kind = {kind} sees all of the {prepared.length} tokens that are read at a time, as softmax does"
    return [] if kind is None else [f"{told}: {advice}"]


def family_for(request: Request) -> str | None:
    """The family of models that was asked for, by name or by what to begin from; else what pictures need."""
    if request.model is not None:
        return preset(request.model)[0]
    if request.task == "classify" and are_pictures(request.data, request.text):
        return "vit"
    chooses = request.task == "generate" or list(request.data) == [DEMO]
    if request.start is not None and chooses and Path(request.start).is_dir():
        return load(request.start).model_config.kind
    return None


def resume_task(path: str, report: Report, further: Further = NO_FURTHER) -> tuple[RunDirectory, Outcome]:
    """Go on from the newest sound checkpoint; a finished run can be trained `further`, with a new curve."""
    run = RunDirectory.open(path)
    raw = run.read_config()
    if "origin" in raw:
        raise DataError(
            f"{path} was imported, not trained here: there is nothing to resume",
            advice=f"train it on your own data:  weft train DATA --from {path}",
        )
    config = read_settings(raw, path)
    ranks = ranks_from_environment(config.training.device)
    torch.set_num_threads(config.training.threads)
    report({"event": "phase", "name": "reading"})
    prepared = find_task(raw["task"], config.model.kind).reopen(config, run, report)
    check_model(config.model, prepared.tokenizer, str(run.config_file), prepared.source_tokenizer)
    job = prepared.job()
    if further != NO_FURTHER and ranks.is_first:
        further.extend(run, job)
    ranks.wait()
    job = watched(job, prepared, run, ranks, report) if was_watched(run) else job
    return run, train_job(run, job, ranks, report)
