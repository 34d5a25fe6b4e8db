"""The loss of labelled words: against plain torch and transformers, additive over batches, packed as padded."""

import pytest
import torch
from torch.nn import functional as F

from fixtures.weights import move_weights
from weft.models import BERTConfig, PackedTexts
from weft.objectives import TaggedRow, TokenClassification
from weft.objectives.token_classification import word_logits

CLS, SEP, MASK = 1, 2, 3
IGNORED = -100
LENGTHS = (4, 4, 7, 3, 9, 12)
LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")


def model_for(dtype=torch.float64):
    torch.manual_seed(1)
    head = {"kind": "tokens", "labels": LABELS}
    model = BERTConfig(vocab_size=40, width=16, depth=2, max_length=12, head=head).build().to(dtype).eval()
    move_weights(model)
    return model


def texts():
    rng = torch.Generator().manual_seed(2)
    inner = [torch.randint(4, 40, (n - 2,), generator=rng) for n in LENGTHS]
    return [torch.cat([torch.tensor([CLS]), ids, torch.tensor([SEP])]) for ids in inner]


def labels():
    """One for each token, ignored at marks and inside words: every second token goes on with a word."""
    rng = torch.Generator().manual_seed(3)
    found = [torch.randint(0, 5, (n,), generator=rng) for n in LENGTHS]
    for row in found:
        row[0], row[-1], row[2:-1:2] = IGNORED, IGNORED, IGNORED
    return found


def batch(numbers=range(6)):
    told = torch.cat([labels()[n] for n in numbers])
    places = torch.nonzero(told != IGNORED)[:, 0]
    return TaggedRow(PackedTexts.of([texts()[n] for n in numbers]), places, told[places])


def test_it_is_the_cross_entropy_of_padded_rows_with_ignored_labels():
    model, longest = model_for(), max(LENGTHS)
    keep = torch.arange(longest) < torch.tensor(LENGTHS)[:, None]
    tokens, wanted = torch.zeros(6, longest, dtype=torch.long), torch.full((6, longest), IGNORED)
    for n, (text, told) in enumerate(zip(texts(), labels(), strict=True)):
        tokens[n, : len(text)], wanted[n, : len(text)] = text, told
    logits = model(tokens, None, keep)
    mean = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=IGNORED)
    summed, count = TokenClassification()(model, batch())
    assert count == int((wanted != IGNORED).sum()) == 15
    assert torch.allclose(summed / count, mean, atol=1e-12)
    everywhere = F.cross_entropy(logits.flatten(0, 1), wanted.clamp(min=0).flatten())
    assert (everywhere - mean).abs() > 1e-2  # a negative control


def test_batches_add_up_and_a_text_alone_is_the_same():
    model, loss = model_for(), TokenClassification(smoothing=0.1)
    whole, count = loss(model, batch())
    parts = [loss(model, batch([n])) for n in range(6)]
    assert torch.allclose(whole, sum(summed for summed, _ in parts), atol=1e-10)
    assert count == sum(number for _, number in parts)
    plain, _ = TokenClassification()(model, batch())
    assert (plain - whole).abs() > 1e-2  # smoothing says something


def test_logits_are_float32_whatever_the_model_computes_with():
    model = model_for(torch.bfloat16)
    given = batch()
    found = word_logits(model, given.row, given.places)
    assert found.dtype == torch.float32 and found.shape == (15, 5)
    assert repr(given) == "TaggedRow(PackedSequences(6 texts, 39 tokens), 15 words)"


def test_tokens_are_hidden_while_it_learns_and_marks_never_are():
    model, seen = model_for(), []
    model.tokens.register_forward_hook(lambda _, given, __: seen.append(given[0].clone()))
    loss, given = TokenClassification(word_dropout=0.5, hidden=MASK, whole=[CLS, SEP]), batch()
    loss(model, given)
    assert torch.equal(seen[-1], given.row.tokens)
    model.train()
    loss(model, given)
    changed = seen[-1] != given.row.tokens
    assert 4 < changed.sum() < 24 and (seen[-1][changed] == MASK).all()
    marks = (given.row.tokens == CLS) | (given.row.tokens == SEP)
    assert marks.sum() == 12 and not (changed & marks).any()


def test_it_is_the_loss_of_transformers(tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is a peer; `make setup` installs it")
    from weft.checkpoints.hugging_face import HuggingFaceFolder

    sizes = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.BertConfig(**sizes, intermediate_size=24, max_position_embeddings=12, num_labels=5)
    theirs = transformers.BertForTokenClassification(config).eval()
    theirs.save_pretrained(tmp_path)
    folder = HuggingFaceFolder(tmp_path)
    ours = folder.config.with_weights(folder.read_weights()).eval()
    total = sum(
        theirs(text[None], labels=told[None]).loss * (told != IGNORED).sum()
        for text, told in zip(texts(), labels(), strict=True)
    )
    assert torch.allclose(TokenClassification()(ours, batch())[0], total, atol=1e-4)
