"""The pretraining loss: right numbers for every task, sums that add up, and no logits that nobody asked for."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from fixtures.numbered_sentences import FIRST_ID, make_marks, make_sentences
from fixtures.weights import move_weights
from weft.data import LabelledPairs, PretrainingSamples
from weft.data.pretraining import TASKS
from weft.errors import ConfigError, UnsupportedError
from weft.models import BERTConfig, HeadConfig
from weft.objectives import ObjectiveConfig, PretrainingBatch, pretraining_loss
from weft.training import AdamWConfig
from weft.training.sums import LossSums

TEXT = make_sentences(12, sentences=(2, 5), tokens=(5, 12))
SIZE = FIRST_ID + 800
PAIRS = LabelledPairs(
    ids=np.arange(FIRST_ID, FIRST_ID + 60).astype(np.uint32),
    words=np.ones(60, dtype=bool),
    parts=np.array([0, 6, 12, 20, 30, 50, 60]),
    labels=np.array([0, 1, 2]),
    classes=("yes", "no", "maybe"),
)
LENGTH = 40


def means_of(parts):
    sums = LossSums()
    sums.add(0.0, 1, parts)
    return sums.means()


def setup(*tasks, dtype=torch.float64, start=0.1, text=TEXT, **fields):
    config = ObjectiveConfig(tasks=tasks, **fields)
    made = PretrainingSamples(text, make_marks(SIZE), LENGTH, tasks=tasks, masking=config.masking, pairs=PAIRS)
    torch.manual_seed(1)
    head = HeadConfig.from_config(config.head(classes=3))
    model = BERTConfig(vocab_size=SIZE, width=16, depth=2, max_length=LENGTH, head=head).build().to(dtype)
    if start:
        move_weights(model, start)
    return config, model, lambda numbers: PretrainingBatch.of(made.batch(np.asarray(numbers)), config, LENGTH)


def gradients(model, *batches):
    """Of the sum over batches, divided by the sum of the counts."""
    model.zero_grad()
    counts = []
    for batch in batches:
        summed, count, _ = pretraining_loss(model, batch)
        summed.backward()
        counts.append(count)
    return {name: p.grad / sum(counts) for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("tasks", [("masked",), ("next-sentence", "inversion"), TASKS], ids="+".join)
def test_small_batches_add_up_to_the_large_one(tasks):
    _, model, batch = setup(*tasks)
    whole = gradients(model, batch(range(12)))
    parts = gradients(model, batch([0, 1, 2, 3, 4]), batch([5]), batch([6, 7, 8, 9, 10, 11]))
    assert whole.keys() == parts.keys() and len(whole) > 10
    assert all(torch.allclose(whole[name], parts[name], atol=1e-12) for name in whole)
    other = gradients(model, batch([0, 1, 2, 3, 4]), batch([5]), batch([6, 7, 8, 9, 10, 12]))
    assert any((whole[name] - other[name]).abs().max() > 1e-6 for name in whole)  # a negative control


@pytest.mark.parametrize("tasks", [("masked",), TASKS, ("sentence-order",)], ids="+".join)
def test_the_loss_is_that_of_padded_texts(tasks):
    config, model, make = setup(*tasks)
    batch = make(range(10))
    summed, count, parts = pretraining_loss(model, batch)
    lengths, longest = batch.row.packed.lengths, batch.row.packed.longest
    keep = torch.arange(longest) < torch.tensor(lengths)[:, None]
    tokens, segments = torch.full((2, len(lengths), longest), 3)
    tokens[keep] = batch.row.tokens[0]
    segments[keep] = 0 if batch.row.segments is None else batch.row.segments[0]
    hidden = model.hidden(tokens, segments.clamp(max=1), keep)
    total = torch.zeros((), dtype=torch.float64)
    if "masked" in tasks:
        logits = model.masked_logits(hidden)[keep][batch.places]  # all of them, and then those that count
        masked = F.cross_entropy(logits, batch.targets, reduction="sum")
        assert torch.allclose(parts["masked"][0], masked) and parts["masked"][2] == len(batch.places) == count
        assert parts["masked"][1] == (logits.argmax(-1) == batch.targets).sum()
        total += masked
    for question in config.questions:
        texts, labels = batch.questions[question]
        logits = model.pair_logits(hidden[texts], question, keep[texts])
        loss = F.cross_entropy(logits, labels, reduction="sum")
        assert torch.allclose(parts[question][0], loss) and parts[question][2] == len(labels)
        assert parts[question][1] == (logits.argmax(-1) == labels).sum()
        total += config.weight(LENGTH) * loss
    assert torch.allclose(summed, total) and parts.keys() == set(tasks)
    if "masked" not in tasks:
        assert count == 10
    model.segments.weight.data[1] += 1  # a negative control: the second text is told from the first
    changed = pretraining_loss(model, batch)[0]
    assert torch.allclose(changed, summed) == (tasks == ("masked",))


def test_the_loss_begins_where_chance_is():
    _, model, make = setup(*TASKS, dtype=torch.float32, start=0)
    found = means_of(pretraining_loss(model, make(range(60)))[2])
    assert abs(found["masked_loss"] - math.log(SIZE)) < 0.05
    for name in ("next_sentence", "sentence_order", "inversion"):
        assert abs(found[f"{name}_loss"] - math.log(2)) < 0.05
    assert abs(found["entailment_loss"] - math.log(3)) < 0.05
    assert set(found) == {f"{task.replace('-', '_')}_{what}" for task in TASKS for what in ("loss", "accuracy")}


def test_one_batch_can_be_learned_by_heart():
    _, model, make = setup(*TASKS, dtype=torch.float32, start=0)
    batch, rule = make(range(8)), AdamWConfig(learning_rate=0.01, weight_decay=0.0).build(model)
    for _ in range(160):
        rule.zero_grad()
        summed, count, parts = pretraining_loss(model, batch)
        (summed / count).backward()
        rule.step()
    found = means_of(parts)
    assert all(value > 0.99 for name, value in found.items() if name.endswith("accuracy")), found
    assert all(value < 0.1 for name, value in found.items() if name.endswith("loss")), found


def test_logits_are_computed_for_hidden_tokens_alone():
    _, model, make = setup("masked", "next-sentence", dtype=torch.float32)
    batch, seen = make(range(8)), []
    model.masked.register_forward_hook(lambda _, given, result: seen.append((given[0].shape[0], result.shape)))
    _, count, _ = pretraining_loss(model, batch)
    assert seen == [(count, (count, SIZE))] and count < 0.2 * batch.row.packed.total


def test_the_weight_makes_it_berts_sum_of_two_means():
    long = make_sentences(6, sentences=(40, 41), tokens=(2, 4))
    config, model, make = setup("masked", "next-sentence", text=long)
    batch = make(range(40))
    summed, count, parts = pretraining_loss(model, batch)
    masked, pairs = (float(parts[name][0]) / parts[name][2] for name in ("masked", "next-sentence"))
    assert config.weight(LENGTH) == pytest.approx(0.15 * LENGTH)
    assert summed.item() / count == pytest.approx(masked + pairs * config.weight(LENGTH) * 40 / count)
    assert 0.8 < config.weight(LENGTH) * 40 / count < 1.35  # texts are not always full
    assert ObjectiveConfig(tasks=("masked", "inversion"), pair_weight=2).weight(LENGTH) == 2
    assert ObjectiveConfig(tasks=("inversion",)).weight(LENGTH) == 1


def test_a_batch_goes_to_a_device_and_speaks():
    _, model, make = setup(*TASKS)
    batch = make(range(8))
    moved = batch.to("cpu")
    assert torch.equal(pretraining_loss(model, moved)[0], pretraining_loss(model, batch)[0])
    assert "8 texts" in repr(batch) and "hidden" in repr(batch)
    far = batch.to("meta")
    assert far.row.tokens.is_meta and far.places.is_meta and far.questions["inversion"][1].is_meta
    assert setup("masked")[2](range(3)).row.segments is None


def test_the_config_speaks():
    config = ObjectiveConfig().override({"tasks": "masked, next-sentence", "whole_words": "yes"})
    assert config.tasks == ("masked", "next-sentence") and config.masking.whole_words
    assert ObjectiveConfig.from_dict(config.to_dict()) == config == ObjectiveConfig.from_toml(config.to_toml())
    with pytest.raises(ConfigError, match="unknown task 'sentence-ordr'\ndid you mean 'sentence-order'"):
        ObjectiveConfig().override({"tasks": "masked,sentence-ordr"})
    for fields, words in (
        ({"tasks": ()}, "at least one"),
        ({"tasks": ("masked", "masked")}, "each once"),
        ({"masked_share": 0}, "masked_share"),
        ({"pair_weight": 1.0}, "without pairs"),
        ({"tasks": ("inversion",), "pair_weight": 0}, "nothing to learn"),
    ):
        with pytest.raises(ConfigError, match=words):
            ObjectiveConfig(**fields)


def test_the_head_is_the_one_that_the_tasks_need():
    assert ObjectiveConfig().head() == {"kind": "masked"}
    pairs = HeadConfig.from_config(ObjectiveConfig(tasks=("entailment", "next-sentence")).head(classes=3))
    assert pairs.kind == "pairs"
    assert (pairs.questions, pairs.answers) == (("next-sentence", "entailment"), (2, 3))
    assert ObjectiveConfig(tasks=TASKS).head()["kind"] == "pretraining"
    _, model, _ = setup("masked", "next-sentence")
    _, _, other = setup("masked", "inversion")
    with pytest.raises(UnsupportedError, match="no question 'inversion'"):
        pretraining_loss(model, other(range(3)))
