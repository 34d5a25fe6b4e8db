"""Before anything is trained: every variant is checked and planned, and what must be the same is made the same.

A plan depends on how fast the machine happens to be: sizes, batch and precision are taken from the first variant of
each model, the tokenizer from the very first, and stand in the requests of the others as settings of a recipe, which
what the user says wins over.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from weft.comparison.trials import Plan, Trial, digest, recipe_of, words_of
from weft.comparison.variants import TrialSpec, Variant, of_variant
from weft.errors import ConfigError, DataError, UnsupportedError
from weft.models import ModelConfig, preset
from weft.tasks.asking import LENGTHS
from weft.tasks.experiment import Experiment, task_for
from weft.tasks.recipe import Recipe
from weft.tasks.recording import Report
from weft.tasks.request import Request, make_request
from weft.tasks.settings import RunConfig
from weft.tasks.task import find_task
from weft.training.freezing import freeze

EVALUATIONS = 10  # of a run, for its curve
SHARE = 0.2  # of the time that they may take
WORTH_TIMING = 20  # steps; fewer are over before they are timed
OWN = ("head", "vocab_size", "source_vocab_size", "start", "end")  # fields of a model that follow from the data
READ_ALIKE = ("model.", "training.")  # settings that leave data and tokenizer as they are


def make_plan(asked: TrialSpec, out: Path, report: Report) -> Plan:
    """Check all variants, then read the data and plan each; `report` is told about the first.

    A setting that does not exist or data that cannot be read are refused here. What a model cannot do is the result of
    its variant, unless no variant is left.
    """
    chosen = asked.variants()
    requests = [_checked(asked, variant, out) for variant in chosen]
    planner = _Planner(asked, report)
    orders = [planner.order(variant, request) for variant, request in zip(chosen, requests, strict=True)]
    if planner.first is None:
        raise UnsupportedError("\n".join(f"{order.name}: {order.reason}" for order in orders[:3]))
    _check_same(orders, asked, requests[0].task)
    training = (planner.learned or planner.first).training
    seconds = 60 * training.minutes if training.minutes else planner.seconds
    timed = training.minutes is not None and not any(f"training.{name}" in asked.vary for name in LENGTHS)
    return Plan(requests[0].task, orders, training.steps, seconds, timed)


def _checked(asked: TrialSpec, variant: Variant, out: Path) -> Request:
    """The request of a variant, if its settings exist; nothing is read for that."""
    return of_variant(variant, lambda: _check(make_request(**asked.asked_by(variant)), out / variant.name))


def _check(request: Request, out: Path) -> Request:
    request.out = str(out)
    with suppress(UnsupportedError):  # which is the result of this variant, and found again when it is planned
        task_for(request).check(request)
    return request


class _Planner:
    """Plans one variant after the other; what the first decides holds for all."""

    def __init__(self, asked: TrialSpec, report: Report) -> None:
        self.asked, self.report = asked, report
        self.first: RunConfig | None = None
        self.learned: RunConfig | None = None  # the first that is learned in steps
        self.seconds: float | None = None
        self.pins: dict[str | None, dict[str, Any]] = {}  # by the model's name
        self.shared: dict[str, Any] = {}
        self.made: dict[str | None, Experiment] = {}
        self.same_data = not asked.options.get("start") and all(key.startswith(READ_ALIKE) for key in asked.vary)
        self.warned: set[str] = set()

    def order(self, variant: Variant, request: Request) -> Trial:
        try:
            return of_variant(variant, lambda: self._planned(variant, request))
        except UnsupportedError as error:
            return Trial(variant.name, variant.settings, reason=str(error))

    def _planned(self, variant: Variant, request: Request) -> Trial:
        known = self.pins.get(request.model)
        request.recipe = _with(request.recipe, self.shared | (known or {}))
        if known is not None and self.same_data:
            planned = _planned_again(self.made[request.model], request)
        else:
            whole = request if known is None else replace(request, minutes=None, epochs=None, steps=1)
            whole.started = time.perf_counter()
            planned = Experiment.plan(whole, self._listen)
        if known is None:
            self._decide(planned, request)
            request.recipe = _with(request.recipe, self.shared | self.pins[request.model])
        facts, config = planned.describe(), planned.config
        return Trial(
            name=variant.name,
            settings=variant.settings,
            recipe=recipe_of(request),
            words=words_of(request),
            parameters=facts["parameters"],
            flops=facts["flops"],
            memory=facts["memory"],
            fingerprint=config.data.fingerprint,
            tokenizer="" if planned.tokenizer is None else digest(planned.tokenizer.to_json().encode()),
        )

    def _listen(self, event: dict[str, Any]) -> None:
        """The first plan is told as it is made; of the others, what was not said before."""
        if event["event"] == "warning":
            if event["text"] in self.warned:
                return
            self.warned.add(event["text"])
        elif self.first is not None:
            return
        self.report(event)

    def _decide(self, planned: Experiment, request: Request) -> None:
        """Take from the first plan of a model what the others would measure for themselves."""
        config, vary = planned.config, self.asked.vary
        pins = {} if config.start else _planned_sizes(config.model, request)
        if self.first is None:
            self.first = config
            if config.tokenizer is not None and not any(key.startswith("tokenizer.") for key in vary):
                self.shared |= {f"tokenizer.{name}": value for name, value in config.tokenizer.to_dict().items()}
        if config.model.learned_in_steps:
            pins["training.batch"] = config.training.batch
        if config.model.learned_in_steps and self.learned is None:
            self.learned = config
            self.shared["training.precision"] = config.training.precision
            if not config.training.evaluate_every:
                self.shared["training.evaluate_every"] = _evaluate_every(planned)
            if not config.training.minutes and config.training.steps > WORTH_TIMING:
                self.seconds = planned.seconds_per_step() * config.training.steps
        self.pins[request.model] = {key: value for key, value in pins.items() if key not in vary}
        self.made[request.model] = planned


def _planned_again(planned: Experiment, request: Request) -> Experiment:
    """The plan for another variant of the same model on the same data: nothing is read or measured again."""
    config = planned.config
    model = request.apply("model", _usual(config.model, request))
    training = request.training_config(config.training)
    freeze(model.skeleton(), training.freeze)  # refuses more layers than there are
    other: Any = planned
    return replace(other, config=config.override({"model": model, "training": training}))


def _usual(model: ModelConfig, request: Request) -> ModelConfig:
    """The family's defaults or the named size, for the same data."""
    _, fields = preset(request.model or model.kind)
    needed = {name: getattr(model, name) for name in OWN if hasattr(model, name)}
    return ModelConfig.from_config({"kind": model.kind, **fields, **needed})


def _with(recipe: Recipe, pins: Mapping[str, Any]) -> Recipe:
    """The recipe with what is decided already below it; what it says itself wins."""
    return Recipe(recipe.path, recipe.task, {**pins, **recipe.settings})


def _planned_sizes(model: ModelConfig, request: Request) -> dict[str, Any]:
    """Where the planned model differs from its family's defaults or its named size, as settings."""
    usual = dict(_flat(_usual(model, request).to_dict()))
    said = {key.removeprefix("model.") for key in (*request.changes, *request.recipe.settings)}
    found = {}
    for key, value in _flat(model.to_dict()):
        own = key.partition(".")[0] in OWN or key in said or key.endswith("kind")
        if not own and key in usual and usual[key] != value:
            found[f"model.{key}"] = value
    return found


def _flat(table: Mapping[str, Any], path: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for key, value in table.items():
        rows += _flat(value, f"{path}{key}.") if isinstance(value, Mapping) else [(path + key, value)]
    return rows


def _evaluate_every(planned: Experiment) -> int:
    """Often enough for a curve, or only at the end (0) where more would take too much of the time.

    A token that is judged costs a third of one that is learned from.
    """
    training = planned.config.training
    learned = training.steps * training.batch * planned.length
    count = min(EVALUATIONS, int(SHARE * learned / max(1, planned.evaluation_tokens / 3)))
    return math.ceil(training.steps / count) if count > 1 else 0


def _check_same(orders: Sequence[Trial], asked: TrialSpec, task: str) -> None:
    """One text or table for all, and one tokenizer, unless that is what varies."""
    planned = [order for order in orders if not order.reason]
    if any(order.fingerprint != planned[0].fingerprint for order in planned):
        raise DataError("the data changed while they were read", advice="start again when nobody writes to them")
    varies = [key for key in asked.vary if key.startswith("tokenizer.") or key == "data.vocabularies"]
    other = next((order for order in planned if order.tokenizer != planned[0].tokenizer), None)
    if other is None:
        return
    if not varies:
        raise ConfigError(
            f"{planned[0].name} and {other.name} need different special tokens: their losses are not of the same text",
            expected="models that can share a tokenizer",
        )
    if not find_task(task).evaluated_by_text:
        raise ConfigError(
            f"{varies[0]} for {task}: a loss for other tokens is another measure",
            expected="one tokenizer for all",
        )
