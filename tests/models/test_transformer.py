"""The Transformer: three memories, cached and padded alike, its sizes, and what it refuses."""

import pytest
import torch

from weft.errors import ConfigError, ShapeError, UnsupportedError
from weft.models import ModelConfig, Transformer, TransformerConfig, preset
from weft.models.pair_model import padded, select_rows, select_sources

SOURCES = [[3, 4, 5, 6, 7], [8, 9], [1, 2, 3]]
TARGETS = torch.tensor([[1, 11, 12, 13, 14, 15], [1, 21, 22, 23, 24, 25], [1, 31, 32, 33, 34, 35]])
WAYS = [(memory, position) for memory in ("last", "same", "joint") for position in ("rotary", "sinusoidal", "learned")]


def make(memory="last", position="rotary", **fields) -> Transformer:
    torch.manual_seed(0)
    changes = {"position.kind": position, "attention.heads": 4} | fields
    config = TransformerConfig(vocab_size=50, width=32, depth=2, max_length=16, memory=memory, dropout=0.0)
    model = config.override(changes).build().double().eval()
    for p in model.parameters():  # outputs that begin at zero would hide everything
        torch.nn.init.normal_(p, std=0.3)
    return model


@pytest.mark.parametrize(("memory", "position"), WAYS)
def test_padding_and_company_change_nothing(memory, position):
    model = make(memory, position)
    source, keep = padded(SOURCES)
    together = model(source, TARGETS, source_keep=keep)
    for n, text in enumerate(SOURCES):
        alone = model(torch.tensor([text]), TARGETS[n : n + 1])
        torch.testing.assert_close(together[n : n + 1], alone, atol=1e-12, rtol=0)
    garbage = source.clone()
    garbage[~keep] = 49
    assert torch.equal(model(garbage, TARGETS, source_keep=keep), together)
    assert not torch.allclose(model(garbage, TARGETS), together)  # without `keep` it would matter


@pytest.mark.parametrize(("memory", "position"), WAYS)
def test_step_by_step_is_all_at_once(memory, position):
    model = make(memory, position)
    source, keep = padded(SOURCES)
    whole = model(source, TARGETS, source_keep=keep)
    with torch.inference_mode():
        for chunks in ([1] * 6, [2, 3, 1], [5, 1]):
            memory_, caches, found, at = model.encode(source, keep), model.new_caches(), [], 0
            for size in chunks:
                found.append(model.logits(model.states(TARGETS[:, at : at + size], memory_, caches=caches)))
                at += size
            torch.testing.assert_close(torch.cat(found, 1), whole, atol=1e-12, rtol=0)


@pytest.mark.parametrize(("memory", "position"), WAYS)
def test_rows_of_a_search_share_a_memory(memory, position):
    """Two rows for each source, in another order, then only the last two sources."""
    model = make(memory, position)
    source, keep = padded(SOURCES)
    whole = model(source, TARGETS, source_keep=keep)
    with torch.inference_mode():
        read, caches = model.encode(source, keep), model.new_caches()
        for i in range(2):
            model.states(TARGETS[:, i : i + 1], read, caches=caches)
        rows = torch.tensor([0, 0, 1, 1, 2, 2])
        select_rows(caches, rows)
        logits = model.logits(model.states(TARGETS[rows][:, 2:3], read, caches=caches))
        torch.testing.assert_close(logits, whole[rows][:, 2:3], atol=1e-12, rtol=0)
        left = torch.tensor([1, 2])
        select_rows(caches, torch.tensor([2, 3, 4, 5]))
        select_sources(caches, left)
        read = read.select(left)
        rows = torch.tensor([1, 1, 2, 2])
        logits = model.logits(model.states(TARGETS[rows][:, 3:4], read, caches=caches))
        torch.testing.assert_close(logits, whole[rows][:, 3:4], atol=1e-12, rtol=0)


@pytest.mark.parametrize(("memory", "position"), WAYS)
def test_nothing_looks_ahead_and_the_whole_source_is_seen(memory, position):
    model = make(memory, position)
    source = torch.tensor([SOURCES[0]])
    logits = model(source, TARGETS[:1])
    later = TARGETS[:1].clone()
    later[0, 4] = 40
    changed = model(source, later)
    assert torch.equal(changed[:, :4], logits[:, :4]) and not torch.allclose(changed[:, 4:], logits[:, 4:])
    for place in range(source.shape[1]):
        other = source.clone()
        other[0, place] = 45
        assert not torch.allclose(model(other, TARGETS[:1])[:, 0], logits[:, 0])


@pytest.mark.parametrize("memory", ["last", "same", "joint"])
def test_gradients_reach_every_parameter(memory):
    model = make(memory).train()
    source, keep = padded(SOURCES)
    model(source, TARGETS, source_keep=keep).square().mean().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


@pytest.mark.parametrize("memory", ["last", "same", "joint"])
def test_the_three_memories_differ(memory):
    """Same seed, other way: what is read from the memory is not the same."""
    source = torch.tensor([SOURCES[0]])
    others = [way for way in ("last", "same", "joint") if way != memory]
    logits = make(memory)(source, TARGETS[:1])
    assert all(not torch.allclose(logits, make(way)(source, TARGETS[:1])) for way in others)


def test_same_layer_memory_is_the_layer_outputs():
    model = make("same")
    states = model.encode(torch.tensor([SOURCES[0]])).states
    assert len(states) == 2 and not torch.allclose(states[0], states[1])
    torch.testing.assert_close(states[-1], make("last").encode(torch.tensor([SOURCES[0]])).states)


@pytest.mark.parametrize(("name", "millions"), [("transformer-base", 63.1), ("transformer-big", 214.2)])
def test_sizes_of_the_paper(name, millions):
    family, fields = preset(name)
    count = sum(p.numel() for p in ModelConfig.from_config({"kind": family, **fields}).skeleton().parameters())
    assert round(count / 1e6, 1) == millions


def test_the_paper_scales_one_shared_table():
    family, fields = preset("transformer-base")
    small = {**fields, "vocab_size": 20, "width": 16, "depth": 1, "attention": {"kind": "softmax", "heads": 2}}
    model = ModelConfig.from_config({"kind": family, **small}).build().eval()
    assert model.head.weight is model.tokens.weight and model.head.bias is None and model.source_tokens is None
    x = model.embedding(model.tokens.weight)
    torch.testing.assert_close(x, 4 * model.tokens.weight)


def test_vocabularies_of_its_own_for_each_side():
    model = TransformerConfig(vocab_size=20, source_vocab_size=70, width=16, depth=1, start=1).build()
    assert model(torch.tensor([[69]]), torch.tensor([[1]])).shape == (1, 1, 20)


def test_config_round_trips():
    config = TransformerConfig(vocab_size=50, memory="joint", decoder_depth=1, head_bias=True)
    assert ModelConfig.from_config(config.to_dict()) == config


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"memory": "same", "decoder_depth": 1}, "as many of both"),
        ({"memory": "joint", "position.kind": "relative"}, "no distance"),
        ({"memory": "joint", "position.kind": "alibi"}, "no distance"),
        ({"start": 50}, "below 50"),
        ({"memory": "first"}, "last"),
    ],
)
def test_what_cannot_be_is_refused(fields, words):
    with pytest.raises(ConfigError, match=words):
        TransformerConfig(vocab_size=50, width=32, depth=2).override(fields)


def test_shapes_and_foreign_caches_are_refused():
    model = make("joint")
    with pytest.raises(ShapeError, match="source"):
        model.encode(torch.tensor([1, 2]))
    with pytest.raises(UnsupportedError, match="new_cache"):
        model.states(TARGETS, model.encode(padded(SOURCES)[0]), caches=make("last").new_caches())


@pytest.mark.parametrize("memory", ["last", "joint"])
def test_one_batch_can_be_learned_by_heart(memory):
    torch.manual_seed(0)
    model = TransformerConfig(vocab_size=50, width=32, depth=1, memory=memory, dropout=0.0).build()
    source, keep = padded(SOURCES)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(60):
        logits = model(source, TARGETS[:, :-1], source_keep=keep)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), TARGETS[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.05


def test_loss_begins_at_ln_of_the_vocabulary():
    torch.manual_seed(0)
    for name in ("transformer", "transformer-base"):
        family, fields = preset(name)
        small = {**fields, "vocab_size": 500, "width": 64, "depth": 2}
        model = ModelConfig.from_config({"kind": family, **small}).override({"attention.heads": 4}).build().eval()
        source = torch.randint(0, 500, (4, 9))
        logits = model(source, torch.randint(0, 500, (4, 9)))
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.randint(0, 500, (36,)))
        assert abs(loss.item() - 6.21) < 0.7
