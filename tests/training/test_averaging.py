"""Averaged weights: the mean of the last evaluations is judged and kept, training goes on from its own, and a
checkpoint holds them."""

import math

import pytest
import torch

from fixtures.weights import move_weights
from training.tiny_trainer import make_trainer
from weft.errors import DataError
from weft.training.averaging import Averaging
from weft.training.schedule import Schedule


def model_of(seed=0):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False), torch.nn.LayerNorm(5))
    model[1].weight = model[0].weight  # tied: one parameter with two names
    return model


def weights(model):
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def moved(model, seed):
    torch.manual_seed(seed)
    move_weights(model, 1.0)
    return weights(model)


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def mean_of(states):
    return {name: torch.stack([state[name] for state in states]).mean(0) for name in states[0]}


def test_inside_the_model_is_the_mean_of_the_last_three():
    model = model_of()
    averaging, history = Averaging(model, 3), []
    for seed in range(5):
        history.append(moved(model, seed))
        with averaging.applied():
            inside = weights(model)
            assert same(inside, mean_of(history[-3:]))
            assert same(inside, history[-1]) == (seed == 0)
        assert same(weights(model), history[-1])  # training goes on from where it was
    assert repr(averaging) == "Averaging(3 of 3)"


def test_one_is_no_averaging():
    model = model_of()
    averaging, before = Averaging(model, 1), weights(model_of())
    with averaging.applied():
        assert same(weights(model), before)
    assert averaging.kept == [] and averaging.tensors() == {}


def test_the_own_weights_come_back_also_after_an_error():
    model = model_of()
    averaging = Averaging(model, 2)
    with averaging.applied():
        pass
    now = moved(model, 7)
    with pytest.raises(ZeroDivisionError), averaging.applied():
        1 / 0  # noqa: B018
    assert same(weights(model), now)


def test_a_checkpoint_gives_back_what_was_kept():
    model = model_of()
    averaging = Averaging(model, 3)
    for seed in range(4):
        moved(model, seed)
        with averaging.applied():
            pass
    tensors = averaging.tensors()
    assert set(tensors) == {f"{place}/{name}" for place in range(3) for name, _ in model.named_parameters()}
    other = Averaging(model_of(9), 3)
    other.restore({name: t.clone() for name, t in tensors.items()})
    assert len(other.kept) == 3 and all(same(*pair) for pair in zip(averaging.kept, other.kept, strict=True))
    for one in (averaging, other):  # and both go on alike
        moved(one.model, 11)
    found = []
    for one in (averaging, other):
        one.model.load_state_dict(model_of(3).state_dict())
        with one.applied():
            found.append(weights(one.model))
    assert same(*found)
    empty = Averaging(model, 3)
    empty.restore({})
    assert empty.kept == []


def test_the_order_of_ten_evaluations_is_by_number():
    model = model_of()
    averaging = Averaging(model, 12)
    history = []
    for seed in range(12):
        history.append(moved(model, seed))
        with averaging.applied():
            pass
    other = Averaging(model_of(), 12)
    other.restore(dict(sorted(averaging.tensors().items())))
    assert all(same(*pair) for pair in zip(other.kept, history, strict=True))


@pytest.mark.parametrize("harm", ["a shape", "a missing tensor", "a stranger's name", "no number"])
def test_damaged_tensors_are_refused(harm):
    model = model_of()
    averaging = Averaging(model, 2)
    with averaging.applied():
        pass
    tensors = averaging.tensors()
    if harm == "a shape":
        tensors["0/0.weight"] = tensors["0/0.weight"][:, :2]
    elif harm == "a missing tensor":
        del tensors["0/2.bias"]
    elif harm == "a stranger's name":
        tensors["0/3.weight"] = torch.zeros(2)
    else:
        tensors["first/0.weight"] = tensors.pop("0/0.weight")
    with pytest.raises(DataError, match="averaged weights"):
        Averaging(model, 2).restore(tensors)


# -- in a run ---------------------------------------------------------------------------------


def judged(path, scores, **changes):
    """A tiny run whose evaluations find these (bleu, loss) and note the weights they saw and those after the step."""
    seen, own = [], []
    made = make_trainer(path, evaluate_every=5, checkpoint_every=0, **changes)

    def evaluate():
        bleu, loss = scores[len(seen)]
        seen.append(weights(made.model))
        return {"validation_loss": loss, "validation_bleu": bleu}

    made.evaluate = evaluate
    made.on_step = lambda values: own.append(weights(made.model)) if values["step"] % 5 == 0 else None
    return made, seen, own


FALLING = [(0.0, 9.0 - n) for n in range(6)]
SCORES = [(1.0, 3.0), (5.0, 2.0), (5.0, 1.5), (4.0, 1.0), (5.0, 1.5), (2.0, 0.5)]


def test_what_is_judged_is_kept_and_what_is_trained_is_not_touched(tmp_path):
    made, seen, own = judged(tmp_path / "mean", FALLING, average=3)
    made.train()
    for n, inside in enumerate(seen):
        assert same(inside, mean_of(own[max(0, n - 2) : n + 1]))
    best = made.run.read_model()
    assert all(torch.equal(best[name], seen[-1][name]) for name in seen[-1])
    plain, _, alone = judged(tmp_path / "plain", FALLING)
    plain.train()
    assert same(alone[-1], own[-1])  # averaging changes no step


@pytest.mark.parametrize(
    ("selection_metric", "best"),
    [("validation_bleu", 3), ("validation_loss", 6)],  # of equal BLEU the lower loss; the older of equals
)
def test_the_best_weights_are_those_that_are_best_at_what_decides(tmp_path, selection_metric, best):
    made, seen, _ = judged(tmp_path / "run", SCORES)
    made.selection_metric = selection_metric
    progress = made.train().progress
    assert progress.best_step == 5 * best and progress.since_best == 6 - best
    assert progress.best == SCORES[best - 1][1]
    assert progress.best_metrics["validation_bleu"] == SCORES[best - 1][0]
    kept = made.run.read_model()
    assert all(torch.equal(kept[name], seen[best - 1][name]) for name in seen[0])
    assert not torch.equal(kept["tokens.weight"], seen[best - 2]["tokens.weight"])


def test_patience_counts_what_decides(tmp_path):
    """The loss falls to the end, BLEU does not."""
    made, seen, _ = judged(tmp_path / "run", SCORES, patience=2)
    made.selection_metric = "validation_bleu"
    outcome = made.train()
    assert outcome.stopped_by == "patience" and outcome.progress.step == 25 and len(seen) == 5


# -- the schedule of the paper ----------------------------------------------------------------


def test_inverse_square_root():
    schedule = Schedule(100, warmup=0.1, decay=0.5, inverse_sqrt=True)
    factors = [schedule.factor(step) for step in range(100)]
    assert factors[:10] == pytest.approx([(n + 1) / 10 for n in range(10)])
    assert factors[9] == max(factors) == 1.0
    assert factors[10:] == pytest.approx([math.sqrt(10 / (n + 1)) for n in range(10, 100)])
    other = Schedule(100, warmup=0.1, decay=0.1)
    assert [other.factor(step) for step in range(10)] == pytest.approx(factors[:10])
    assert other.factor(50) == 1.0 != factors[50]  # the linear one stays, and then falls


@pytest.mark.parametrize("inverse_sqrt", [True, False])
def test_the_last_step_before_a_new_curve_is_what_it_was(inverse_sqrt):
    """A run that was trained further may fall back on a checkpoint before its first end."""
    before, after = (Schedule(10, warmup=0.2, decay=0.5, inverse_sqrt=inverse_sqrt) for _ in range(2))
    after.apply([{"event": "extend", "step": 10, "steps": 20}])
    assert [after.factor(step) for step in range(10)] == [before.factor(step) for step in range(10)]
    assert [after.factor(step) for step in range(10, 20)] == pytest.approx([before.factor(step) for step in range(10)])
