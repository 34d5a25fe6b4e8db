"""What a plan says a step costs is what `weft inspect` says of the same model, batch and length: for every family."""

from types import SimpleNamespace

import pytest

from fixtures.images import write_image_folder
from fixtures.operations import LEARNED_FAMILIES, make_small_config, usual_length
from fixtures.texts import write_book
from weft.cli.inspect_cost import COST
from weft.tasks.experiment import Experiment
from weft.tasks.inspection import Inspected
from weft.tasks.request import Request
from weft.training import TrainingConfig

FIND = {section.name: section.find for section in COST}
PLANNED = {"vit": "classify", "davit": "classify", "convnext": "classify", "resnet": "classify"}
PLANNED |= {"cbow": "embed", "skipgram": "embed"}  # they describe a plan in their own words


def agrees(facts, model, training, length):
    found = Inspected("", model, length, training.batch, training)
    assert facts["flops"] == FIND["flops"](found, {})["total"]
    assert facts["parameters"] == FIND["parameters"](found, {})["total"]
    assert facts["memory"] > found.cost.memory().total, "the process has some already"


@pytest.mark.parametrize("freeze", [None, "embeddings"])
@pytest.mark.parametrize("family", [family for family in LEARNED_FAMILIES if family not in PLANNED])
def test_a_plan_equals_inspect(family, freeze):
    if freeze and family not in ("gpt", "lstm"):
        pytest.skip("what is frozen is asked of two")
    model, training = make_small_config(family), TrainingConfig(steps=1, batch=3, freeze=freeze)
    length = usual_length(model)
    plan = SimpleNamespace(
        config=SimpleNamespace(model=model, training=training, start=None),
        tokenizer=SimpleNamespace(kind="words", vocab_size=96),
        length=length,
    )
    agrees(Experiment.common_facts(plan, length, 1.0), model, training, length)


@pytest.mark.parametrize("family", PLANNED)
def test_plans_in_other_words_equal_inspect(family, tmp_path):
    task = PLANNED[family]
    data = write_image_folder(tmp_path / "images") if task == "classify" else write_book(tmp_path / "book.txt")
    experiment = Experiment.plan(Request((str(data),), task=task, model=family, steps=1))
    agrees(experiment.describe(), experiment.config.model, experiment.config.training, experiment.length)
