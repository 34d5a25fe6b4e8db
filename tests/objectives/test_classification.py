"""The loss of a classifier: against plain torch, additive over batches, and words hidden only while it learns."""

import pytest
import torch
from torch.nn import functional as F

from fixtures.weights import move_weights
from weft.models import BERTConfig, PackedTexts
from weft.models.bert.model import ClassesConfig
from weft.objectives import Classification, LabelledRow
from weft.objectives.classification import class_logits

CLS, SEP, MASK = 1, 2, 3
LABELS = {
    "single": torch.tensor([0, 2, 1, 1, 0, 2]),
    "multilabel": torch.tensor([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 0], [0, 0, 1]]).float(),
    "regression": torch.tensor([0.5, -1.25, 3.0, 0.0, 0.75, -0.5]),
}
LOGITS = torch.tensor(
    [[1.0, -2.0, 0.5], [0.1, 0.2, 0.3], [-3.0, 2.0, 5.0], [0.0, 4.0, 0.0], [2.5, 2.5, -1.0], [-0.7, 0.0, 0.9]]
)


def model_for(kind="single", dtype=torch.float64, **fields):
    torch.manual_seed(1)
    head = ClassesConfig(classes=1 if kind == "regression" else 3, multilabel=kind == "multilabel")
    model = BERTConfig(vocab_size=40, width=16, depth=2, max_length=12, head=head, **fields).build().to(dtype)
    move_weights(model)
    return model


def texts(lengths=(4, 4, 7, 3, 9, 12)):
    rng = torch.Generator().manual_seed(2)
    inner = [torch.randint(4, 40, (n - 2,), generator=rng) for n in lengths]
    return [torch.cat([torch.tensor([CLS]), ids, torch.tensor([SEP])]) for ids in inner]


def batch(kind="single", places=range(6), segments=False):
    chosen = [texts()[n] for n in places]
    told = [(torch.arange(len(t)) > 2).long() for t in chosen] if segments else None
    return LabelledRow(PackedTexts.of(chosen, told), LABELS[kind][list(places)])


# -- numbers ----------------------------------------------------------------------------------


def test_one_class_is_cross_entropy():
    found = Classification("single").loss(LOGITS, LABELS["single"])
    assert torch.allclose(found, F.cross_entropy(LOGITS, LABELS["single"], reduction="sum"))


def test_weights_of_classes_are_torchs():
    weights = [0.5, 3.0, 1.25]
    found = Classification("single", weights=weights).loss(LOGITS, LABELS["single"])
    wanted = F.cross_entropy(LOGITS, LABELS["single"], torch.tensor(weights), reduction="sum")
    assert torch.allclose(found, wanted)
    assert not torch.allclose(found, Classification("single").loss(LOGITS, LABELS["single"]))


def test_smoothing_is_torchs_and_a_weight_is_that_of_the_example():
    smooth = Classification("single", smoothing=0.2).loss(LOGITS, LABELS["single"])
    each = F.cross_entropy(LOGITS, LABELS["single"], label_smoothing=0.2, reduction="none")
    assert torch.allclose(smooth, each.sum())
    both = Classification("single", smoothing=0.2, weights=[0.5, 3.0, 1.25]).loss(LOGITS, LABELS["single"])
    assert torch.allclose(both, (each * torch.tensor([0.5, 1.25, 3.0, 3.0, 0.5, 1.25])).sum())


def test_several_labels_are_binary_cross_entropy_by_text():
    found = Classification("multilabel").loss(LOGITS, LABELS["multilabel"])
    wanted = F.binary_cross_entropy(LOGITS.sigmoid(), LABELS["multilabel"], reduction="none").mean(1).sum()
    assert torch.allclose(found, wanted)
    smooth = Classification("multilabel", smoothing=0.2).loss(LOGITS, LABELS["multilabel"])
    softened = LABELS["multilabel"] * 0.8 + 0.1
    assert torch.allclose(smooth, F.binary_cross_entropy(LOGITS.sigmoid(), softened, reduction="none").mean(1).sum())


def test_a_number_is_squared_error():
    found = Classification("regression").loss(LOGITS[:, :1], LABELS["regression"])
    assert torch.allclose(found, F.mse_loss(LOGITS[:, 0], LABELS["regression"], reduction="sum"))


def test_half_precision_is_widened_and_nothing_overflows():
    huge = torch.tensor([[300.0, -300.0, 0.0]], dtype=torch.bfloat16)
    for kind, label in (("single", torch.tensor([1])), ("multilabel", torch.tensor([[0.0, 1.0, 0.0]]))):
        found = Classification(kind).loss(huge, label)
        assert found.dtype == torch.float32 and found.isfinite()


# -- sums -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LABELS)
def test_small_batches_add_up_to_the_large_one(kind):
    weights = [0.5, 3.0, 1.25] if kind == "single" else None
    loss, model = Classification(kind, weights=weights, smoothing=0.0 if kind == "regression" else 0.1), model_for(kind)

    def gradients(*parts):
        model.zero_grad()
        count = 0
        for places in parts:
            summed, terms = loss(model, batch(kind, places))
            summed.backward()
            count += terms
        assert count == 6
        return [p.grad / count for p in model.parameters() if p.grad is not None]

    whole, parts, other = gradients(range(6)), gradients([0, 1, 2, 3], [4], [5]), gradients([0, 1, 2, 3], [4], [4])
    assert len(whole) > 10 and any(float(g.abs().max()) > 1e-3 for g in whole)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(whole, parts, strict=True))  # the loss is in float32
    assert any((a - b).abs().max() > 1e-4 for a, b in zip(whole, other, strict=True))  # a negative control


@pytest.mark.parametrize("segments", [False, True])
def test_a_row_is_each_text_alone(segments):
    model, together = model_for(), batch(segments=segments)
    logits = class_logits(model, together.row)
    assert logits.shape == (6, 3)
    alone = torch.cat([class_logits(model, batch(places=[n], segments=segments).row) for n in range(6)])
    assert (logits - alone).abs().max() < 1e-12
    backwards = class_logits(model, batch(places=[5, 4, 3, 2, 1, 0], segments=segments).row)
    assert (logits - backwards.flip(0)).abs().max() < 1e-12
    padded = torch.zeros(6, 12, dtype=torch.long)
    kinds, keep = torch.zeros_like(padded), torch.zeros(6, 12, dtype=torch.bool)
    for n, text in enumerate(texts()):
        padded[n, : len(text)], keep[n, : len(text)] = text, True
        kinds[n, : len(text)] = (torch.arange(len(text)) > 2).long() if segments else 0
    assert (logits - model(padded, kinds, keep)).abs().max() < 1e-12
    assert (logits - class_logits(model, batch(segments=not segments).row)).abs().max() > 1e-3  # a negative control


# -- hidden words -----------------------------------------------------------------------------


def dropping(share):
    return Classification("single", word_dropout=share, hidden=MASK, whole=(CLS, SEP))


def test_marks_are_never_hidden():
    row = batch().row
    for _ in range(20):
        found = dropping(0.5).with_gaps(row).tokens
        marks = (row.tokens == CLS) | (row.tokens == SEP)
        assert torch.equal(found[marks], row.tokens[marks])
    everything = dropping(1.0).with_gaps(row).tokens
    assert (everything[~marks] == MASK).all() and torch.equal(everything[marks], row.tokens[marks])


def test_as_many_words_are_hidden_as_asked_for():
    row = PackedTexts.of([torch.randint(4, 40, (20_000,))])
    found = dropping(0.3).with_gaps(row)
    hidden = found.tokens == MASK
    assert abs(hidden.float().mean() - 0.3) < 0.02
    assert torch.equal(found.tokens[~hidden], row.tokens[~hidden])
    assert found.packed == row.packed
    assert dropping(0.0).with_gaps(row) is row


def test_words_are_hidden_only_while_it_learns():
    model, given = model_for(), batch()
    seen = []
    model.tokens.register_forward_hook(lambda _, args, __: seen.append(args[0].clone()))
    model.eval()
    whole = dropping(0.6)(model, given)[0]
    assert torch.equal(seen[-1], given.row.tokens)
    assert torch.equal(whole, Classification("single")(model, given)[0])
    model.train()
    dropping(0.6)(model, given)
    assert (seen[-1] == MASK).any() and not (given.row.tokens == MASK).any()


def test_what_is_hidden_follows_torchs_random_state():
    row, found = batch().row, []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        found.append(dropping(0.5).with_gaps(row).tokens)
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])


def test_segments_and_device_stay():
    given = batch(segments=True)
    hidden = dropping(0.5).with_gaps(given.row)
    assert torch.equal(hidden.segments, given.row.segments)
    far = given.to("meta")
    assert far.row.tokens.is_meta and far.row.segments.is_meta and far.labels.is_meta
    assert repr(dropping(0.5)) == "Classification(single)"
