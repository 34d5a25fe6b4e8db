"""What `weft inspect` looks at: a named size, a recipe, a run or a Hugging Face folder, as settings of a model and of
the steps it learns in. What the user did not give is filled in, and what was filled in is reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from weft.config import within
from weft.cost import Cost, cost_of
from weft.cost.curves import wider
from weft.cost.flops import with_numbers
from weft.errors import ConfigError, DataError
from weft.index import check_inspected_name
from weft.models import ClassifiesImages, EncodesImages, ModelConfig, Seq2SeqLM, is_model, preset
from weft.models.presets import presets, tiny_model
from weft.tasks.asking import below
from weft.tasks.environment import memory_in_use
from weft.tasks.names import task_names
from weft.tasks.recipe import Recipe, read_recipe
from weft.tasks.run import Run
from weft.tasks.task import default_task, find_task
from weft.training import TrainingConfig
from weft.training.step_cost import learning_of

DEFAULT_VOCABULARY_SIZES = {
    "characters": 100,
    "bytes": 257,
    "words": 50_000,
    "bpe": 8192,
    "wordpiece": 8192,
    "unigram": 8192,
}
DEFAULT_TOKENS, MAX_TOKENS = 256, 1024  # tokens of a text, by default; of a model that may read a million
DEFAULT_TEXTS, DEFAULT_IMAGES = 16, 64  # in one step, by default
DEFAULT_CLASSES = 10


@dataclass(frozen=True)
class Inspected:
    """A model that may not exist yet.

    name      as the user gave it
    length    tokens of a text, or rows of an image; `batch` of them in one step
    training  how it learns; `steps` is 0 where nobody said how long
    run       the run or folder it comes from
    notes     what was filled in
    """

    name: str
    config: ModelConfig
    length: int
    batch: int
    training: TrainingConfig
    steps: int = 0
    run: Run | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def cost(self) -> Cost:
        """What a training step of it costs."""
        return cost_of(self.config, batch=self.batch, length=self.length, learning=learning_of(self.training))


def inspected(
    name: str, *, length: int | None = None, batch: int | None = None, changes: Mapping[str, Any] | None = None
) -> Inspected:
    """Find out what is meant by a name, and fill in what it does not say."""
    for word, value in (("length", length), ("batch", batch)):
        if value is not None and not 1 <= value < 2**31:
            raise ConfigError(f"--{word} {value}", expected="a number from 1 on")
    for key in changes or {}:
        if key.partition(".")[0] not in ("model", "training"):
            raise ConfigError(f"--set {key}=…", expected="model.… or training.…: nothing else changes what it costs")
    said, path = dict(changes or {}), Path(name)
    if path.suffix == ".toml":
        found = _of_recipe(name, read_recipe(path), said)
    elif (path.is_dir() and not is_model(name)) or _is_path(name):
        found = _of_run(name, said)
    else:
        found = _of_preset(name, said)
    return _at(found, length, batch)


def _is_path(name: str) -> bool:
    return "/" in name or "\\" in name


def _of_preset(name: str, said: Mapping[str, Any]) -> Inspected:
    check_inspected_name(name, ModelConfig.registry, presets())
    family, fields = preset(name)
    notes: list[str] = []
    if not fields and ModelConfig.registry.find(family).learned_in_steps:  # type: ignore[attr-defined]
        notes.append(f"{name} is sized for your data and time by `weft train`; these are its sizes without either")
    model = _filled(family, fields, "bpe", said, notes)
    training = within("training", lambda: TrainingConfig(steps=1, batch=1).override(below("training", said)))
    steps = training.steps if "training.steps" in said else 0
    batch = training.batch if "training.batch" in said else 0
    return Inspected(name, model, 0, batch, training, steps, None, tuple(notes))


def _of_recipe(name: str, recipe: Recipe, said: Mapping[str, Any]) -> Inspected:
    told = {**recipe.settings, **said}
    task = recipe.task or default_task()
    if task not in task_names():
        raise ConfigError(f"{name}: task = {task!r}", expected=f"one of {', '.join(task_names())}")
    family = told.pop("model.preset", None) or told.pop("model.kind", None) or find_task(task).family
    kind, fields = within(name, lambda: preset(str(family)))
    tokenizer = str(told.get("tokenizer.kind", "bpe"))
    notes: list[str] = []
    if "tokenizer.vocab_size" in told:
        told.setdefault("model.vocab_size", told["tokenizer.vocab_size"])
    model = within(name, lambda: _filled(kind, fields, tokenizer, told, notes))
    steps, batch = told.get("training.steps"), told.get("training.batch")
    ours = {key: value for key, value in below("training", told).items() if key not in ("minutes", "epochs")}
    training = within(name, lambda: TrainingConfig(steps=1, batch=1).override(ours))
    return Inspected(
        name, model, 0, training.batch if batch else 0, training, training.steps if steps else 0, None, tuple(notes)
    )


def _filled(
    family: str, fields: Mapping[str, Any], tokenizer: str, said: Mapping[str, Any], notes: list[str]
) -> ModelConfig:
    """The settings of a model with what its data would say."""
    cls: Any = ModelConfig.registry.find(family)
    known = dict(fields)
    if "vocab_size" in cls.__dataclass_fields__ and "vocab_size" not in known:
        known["vocab_size"] = int(DEFAULT_VOCABULARY_SIZES.get(tokenizer, 8192))
        if "model.vocab_size" not in said:
            notes.append(f"a vocabulary of {known['vocab_size']:,} ({tokenizer}), which your text will change")
    if ClassifiesImages in cls.learns and not ({"head"} & known.keys() or "model.head.classes" in said):
        known["head"] = {"classes": DEFAULT_CLASSES}
        notes.append(f"{DEFAULT_CLASSES} classes")
    changes = {key: value for key, value in below("model", said).items() if key != "preset"}
    return within("model", lambda: ModelConfig.from_config({"kind": family, **known}).override(changes))


def _of_run(name: str, said: Mapping[str, Any]) -> Inspected:
    if Path(name).is_file():
        raise DataError(f"{name} is a file", expected="a run, a Hugging Face folder, a recipe (.toml) or a named size")
    run = Run(name)
    model = within("model", lambda: run.model_config.override(below("model", said)))
    training = TrainingConfig(steps=1, batch=1) if run.is_imported else run.config.training
    training = within("training", lambda: training.override(below("training", said)))
    length, batch, steps = 0, 0, 0
    if not run.is_imported:
        data = run.config.data
        length = getattr(data, "size", None) or getattr(data, "length", None) or 0
        batch, steps = training.batch, training.steps
        objective: Any = getattr(run.config, "objective", None)
        if Seq2SeqLM in model.provides and hasattr(objective, "batch_tokens"):  # of both sides
            length = length or int(getattr(model, "max_length", DEFAULT_TOKENS))
            each = objective.batch_tokens / (2 * length)  # texts in what its training counts as one
            batch = max(1, round(batch * each))
            if training.micro_batch:
                training = replace(training, micro_batch=max(1, round(training.micro_batch * each)))
    else:
        steps = training.steps if "training.steps" in said else 0
        batch = training.batch if "training.batch" in said else 0
    return Inspected(name, model, length, batch, training, steps, run)


def _at(found: Inspected, length: int | None, batch: int | None) -> Inspected:
    """With the given length and batch, or the model's own."""
    model, notes = found.config, list(found.notes)
    images = EncodesImages in model.provides
    most = getattr(model, "max_length", None)
    position = getattr(getattr(model, "position", None), "kind", "")
    if length is not None and position == "learned" and most is not None and length > most:
        raise ConfigError(
            f"--length {length}", expected=f"at most {most}: {found.name} learns a vector for each position"
        )
    if images and length is not None and length < getattr(model, "patch", 1):
        raise ConfigError(
            f"--length {length}: images of {length} rows", expected=f"at least {getattr(model, 'patch', 1)}"
        )
    own = found.length or (getattr(model, "image_size", 0) or _side(found.name) if images else most or DEFAULT_TOKENS)
    if length is None:
        length = int(own) if found.length or images else min(int(own), MAX_TOKENS)
        unit = f"images of {length} × {length} pixels" if images else f"texts of {length:,} tokens"
        notes.append(f"{unit}, {_why(found, bool(most or getattr(model, 'image_size', 0)))} (--length)")
    if batch is None:
        batch = found.batch or (DEFAULT_IMAGES if images else DEFAULT_TEXTS)
        why = "as in its training" if found.batch else "as nothing says it"
        notes.append(f"{batch:,} of them in a step, {why} (--batch)")
    notes += _besides(found.training, batch)
    return Inspected(found.name, model, length, batch, found.training, found.steps, found.run, tuple(notes))


def _besides(training: TrainingConfig, batch: int) -> Iterator[str]:
    """Settings of a training that change what its steps cost."""
    if training.micro_batch and training.micro_batch < batch:
        yield f"the batch in parts of {training.micro_batch} (training.micro_batch)"
    if training.freeze is not None:
        layers = "" if training.freeze == "embeddings" else f" and the first {training.freeze} layers"
        yield f"embeddings{layers} frozen (training.freeze)"
    if training.precision != "float32":
        yield f"products in {training.precision} (training.precision)"


def _side(name: str) -> int:
    return 224 if name in presets() else 32


def _why(found: Inspected, own: bool) -> str:
    if found.length:
        return "as in its training"
    return "the model's own" if own else "as nothing says it"


def process_memory(training: TrainingConfig) -> int:
    """Bytes of this process once torch has done a step of a tiny model: what there is before the real one."""
    model: Any = tiny_model().build()
    update = learning_of(training).update
    assert update is not None
    move = update(model)
    torch.autograd.backward(model.example_loss(1, 16, with_numbers))
    move()
    return memory_in_use()


def smaller_than(found: Inspected, flops: float) -> dict[str, Any] | None:
    """The widest model of the same family whose step has a quarter of these operations, and its share of them."""
    for eighths in range(7, 0, -1):
        model = wider(found.config, eighths / 8)
        if model is None or not flops:
            continue
        share = replace(found, config=model).cost.flops / flops
        if share <= 0.26:
            width = getattr(model, "width", None)
            return {"words": f"a width of {width} instead of {getattr(found.config, 'width', None)}", "share": share}
    return None
