"""Recurrent translation: equal to the formulas of the papers, cached and padded alike, and what it refuses."""

import pytest
import torch

from weft.analysis import capture
from weft.blocks.attention.additive import AdditiveAttention, AdditiveCore
from weft.blocks.attention.base import Mask
from weft.blocks.recurrent import StateCache
from weft.cost import cost_of
from weft.errors import ConfigError, ShapeError, UnsupportedError
from weft.generation import SearchConfig
from weft.generation.text_to_text import write
from weft.models import Bahdanau, BahdanauConfig, ModelConfig, Seq2Seq, Seq2SeqConfig, converter_for, preset
from weft.models.pair_model import padded, select_rows, select_sources
from weft.objectives.text_to_text import PairBatch, TextToText
from weft.training.optimizer import MuonConfig

SOURCES = [[3, 4, 5, 6, 7], [8, 9], [1, 2, 3]]
TARGETS = torch.tensor([[1, 11, 12, 13, 14, 15], [1, 21, 22, 23, 24, 25], [1, 31, 32, 33, 34, 35]])
KINDS = ("seq2seq", "bahdanau")
WAYS = [(kind, depth) for kind in KINDS for depth in (1, 2)]


def make(kind, depth=1, **fields):
    torch.manual_seed(0)
    changes = {"kind": kind, "vocab_size": 50, "width": 12, "depth": depth, "dropout": 0.0, **fields}
    model = ModelConfig.from_config(changes).build().double().eval()
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.4)
    return model


# -- the formulas, a row and a token at a time ------------------------------------------------


def unit(maps, x, state):
    """Cho et al. 2014, with the biases as torch has them: (input map, input bias, state map, state bias)."""
    ours, theirs = maps[0] @ x + maps[1], maps[2] @ state + maps[3]
    (r, z, n), (hr, hz, hn) = ours.chunk(3), theirs.chunk(3)
    update = torch.sigmoid(z + hz)
    return (1 - update) * torch.tanh(n + torch.sigmoid(r + hr) * hn) + update * state


def kernel(layer, back=False):
    ending = "_l0_reverse" if back else "_l0"
    return [getattr(layer, name + ending) for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")]


def run(maps, vectors, first=None):
    states, state = [], torch.zeros(maps[2].shape[1], dtype=torch.float64) if first is None else first
    for x in vectors:
        state = unit(maps, x, state)
        states.append(state)
    return states


def vectors_of(model, table, tokens):
    return [table.weight[token] * model.config.width**0.5 for token in tokens]


def seq2seq_reference(model, source, target):
    """Read backwards; the last state of each layer is the first of its partner."""
    table = model.tokens if model.source_tokens is None else model.source_tokens
    x, memory = vectors_of(model, table, source[::-1] if model.config.reverse else source), []
    for layer in model.encoder.layers:
        x = run(kernel(layer), x)
        memory.append(x[-1])
    x = vectors_of(model, model.tokens, target)
    for layer, first in zip(model.decoder.layers, memory, strict=True):
        x = run(kernel(layer), x, first)
    return torch.stack([model.tokens.weight @ state for state in x])


def bahdanau_reference(model, source, target):
    """Before each step: how well does every state of the source fit the last state of the writer?"""
    table = model.tokens if model.source_tokens is None else model.source_tokens
    x = vectors_of(model, table, source)
    for layer in model.encoder.layers:
        there, back = run(kernel(layer), x), run(kernel(layer, back=True), x[::-1])
        x = [torch.cat(both) for both in zip(there, back[::-1], strict=True)]
    first, *others = torch.tanh(model.first.weight @ back[-1] + model.first.bias).chunk(model.config.depth)
    looking, *following = model.decoder.layers
    attention, state, states, contexts = looking.attention, first, [], []
    given = vectors_of(model, model.tokens, target)
    maps = [
        torch.cat([looking.input.weight, looking.context.weight], 1),
        looking.input.bias, looking.state.weight, looking.state.bias,
    ]  # fmt: skip
    for vector in given:
        asked = attention.query.weight @ state
        answers = [attention.key.weight @ value + attention.key.bias for value in x]
        scores = torch.stack([attention.core.score @ torch.tanh(asked + answer) for answer in answers])
        weights = scores.exp() / scores.exp().sum()
        context = sum(weight * value for weight, value in zip(weights, x, strict=True))
        state = unit(maps, torch.cat([vector, context]), state)
        states.append(state)
        contexts.append(context)
    for layer, first in zip(following, others, strict=True):
        states = run(kernel(layer), states, first)
    logits = []
    for parts in zip(states, contexts, given, strict=True):
        both = model.readout.weight @ torch.cat(parts) + model.readout.bias
        logits.append(model.tokens.weight @ torch.maximum(both[::2], both[1::2]))
    return torch.stack(logits)


REFERENCE = {"seq2seq": seq2seq_reference, "bahdanau": bahdanau_reference}


@pytest.mark.parametrize(("kind", "depth"), WAYS)
@pytest.mark.parametrize("fields", [{}, {"source_vocab_size": 20}])
def test_the_formulas_of_the_papers(kind, depth, fields):
    """Logits and the gradient of every parameter, in float64."""
    model = make(kind, depth, **fields)
    source, keep = padded(SOURCES)
    logits = model(source, TARGETS, source_keep=keep)
    wanted = torch.stack([REFERENCE[kind](model, s, t) for s, t in zip(SOURCES, TARGETS.tolist(), strict=True)])
    torch.testing.assert_close(logits, wanted, atol=1e-12, rtol=0)
    parameters = dict(model.named_parameters())
    ways = [torch.autograd.grad(one.cos().sum(), list(parameters.values())) for one in (logits, wanted)]
    for name, ours, theirs in zip(parameters, *ways, strict=True):
        assert theirs.abs().max() > 1e-9, name
        torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=1e-12)


def test_a_source_may_be_read_forwards():
    model = make("seq2seq", 2, reverse=False)
    wanted = seq2seq_reference(model, SOURCES[0], TARGETS[0].tolist())
    torch.testing.assert_close(model(torch.tensor([SOURCES[0]]), TARGETS[:1])[0], wanted, atol=1e-12, rtol=0)
    assert not torch.allclose(make("seq2seq", 2)(torch.tensor([SOURCES[0]]), TARGETS[:1])[0], wanted)


# -- alone, in company, step by step ----------------------------------------------------------


@pytest.mark.parametrize(("kind", "depth"), WAYS)
def test_padding_and_company_change_nothing(kind, depth):
    model = make(kind, depth)
    source, keep = padded(SOURCES)
    together = model(source, TARGETS, source_keep=keep)
    for n, text in enumerate(SOURCES):
        alone = model(torch.tensor([text]), TARGETS[n : n + 1])
        torch.testing.assert_close(together[n : n + 1], alone, atol=1e-12, rtol=0)
    garbage = source.clone()
    garbage[~keep] = 10**9  # no token at all
    assert torch.equal(model(garbage, TARGETS, source_keep=keep), together)
    assert not torch.allclose(model(source, TARGETS), together)  # without `keep` it would matter
    left = torch.stack([row.roll(int((~kept).sum())) for row, kept in zip(garbage, keep, strict=True)])
    assert torch.equal(model(left, TARGETS, source_keep=keep.flip(1)), together)
    longer = torch.cat([TARGETS, TARGETS[:, :2]], 1)
    torch.testing.assert_close(model(source, longer, source_keep=keep)[:, :6], together, atol=1e-14, rtol=0)


@pytest.mark.parametrize(("kind", "depth"), WAYS)
def test_step_by_step_is_all_at_once(kind, depth):
    model = make(kind, depth)
    source, keep = padded(SOURCES)
    whole = model(source, TARGETS, source_keep=keep)
    with torch.inference_mode():
        for chunks in ([1] * 6, [2, 3, 1], [5, 1]):
            memory, caches, found, at = model.encode(source, keep), model.new_caches(), [], 0
            for size in chunks:
                found.append(model.logits(model.states(TARGETS[:, at : at + size], memory, caches=caches)))
                at += size
                assert [cache.start for cache in caches] == [at] * depth
            torch.testing.assert_close(torch.cat(found, 1), whole, atol=1e-12, rtol=0)


@pytest.mark.parametrize(("kind", "depth"), WAYS)
def test_rows_of_a_search_share_a_memory(kind, depth):
    """Two rows for each source, in another order, then only the last two sources."""
    model = make(kind, depth)
    source, keep = padded(SOURCES)
    whole = model(source, TARGETS, source_keep=keep)
    other = model(source, TARGETS.flip(0), source_keep=keep)
    with torch.inference_mode():
        read, caches = model.encode(source, keep), model.new_caches()
        model.states(TARGETS[:, :1], read, caches=caches)
        select_rows(caches, torch.tensor([0, 0, 1, 1, 2, 2]))
        beside = torch.stack([TARGETS, TARGETS.flip(0)], 1).flatten(0, 1)
        logits = model.logits(model.states(beside[:, 1:3], read, caches=caches))
        torch.testing.assert_close(logits[::2], whole[:, 1:3], atol=1e-12, rtol=0)
        torch.testing.assert_close(logits[1::2], other[:, 1:3], atol=1e-12, rtol=0)
        select_rows(caches, torch.tensor([3, 2, 4, 4]))
        select_sources(caches, torch.tensor([1, 2]))
        read = read.select(torch.tensor([1, 2]))
        logits = model.logits(model.states(beside[[3, 2, 4, 4]][:, 3:4], read, caches=caches))
        wanted = torch.stack([other[1], whole[1], whole[2], whole[2]])[:, 3:4]
        torch.testing.assert_close(logits, wanted, atol=1e-12, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_looks_ahead_and_the_order_of_the_source_matters(kind):
    model = make(kind)
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
    assert not torch.allclose(model(source.flip(1), TARGETS[:1]), logits)


@pytest.mark.parametrize("kind", KINDS)
def test_a_beam_of_one_is_greedy_and_batches_are_as_alone(kind):
    model = make(kind, 2).float()
    limits = [9, 7, 8]

    def found(sources, limits, beams):
        texts = write(model, sources, SearchConfig(beams=beams, end=0), start=1, limits=limits)
        return [(one[0].tokens, round(one[0].log_probability, 3)) for one in texts]

    for beams in (1, 3):
        together = found(SOURCES, limits, beams)
        alone = [found([s], [limit], beams)[0] for s, limit in zip(SOURCES, limits, strict=True)]
        assert together == alone and all(tokens for tokens, _ in together)
    for source, limit, (tokens, _) in zip(SOURCES, limits, found(SOURCES, limits, 1), strict=True):
        text = [1]  # by hand: the likeliest next, read anew each time
        while len(text) <= limit and (len(text) == 1 or text[-1] != 0):
            text.append(int(model(torch.tensor([source]), torch.tensor([text]))[0, -1].argmax()))
        assert tokens == [token for token in text[1:] if token != 0][:limit]


# -- looking inside ---------------------------------------------------------------------------


def test_the_weights_that_are_shown_are_those_in_use(monkeypatch):
    """Weights · values is what the writer received; and looking changes nothing, bit by bit."""
    model = make("bahdanau", 2)
    source, keep = padded(SOURCES)
    plain = model(source, TARGETS, source_keep=keep)
    received = []
    read = model._read
    monkeypatch.setattr(model, "_read", lambda *parts: received.append(parts[1]) or read(*parts))
    with capture(model) as maps:
        assert torch.equal(model(source, TARGETS, source_keep=keep), plain)
    assert list(maps) == [model.looks]
    found = maps[model.looks]
    assert found.weights.shape == (3, 1, 6, 5)
    torch.testing.assert_close((found.weights @ found.value)[:, 0], received[0], atol=1e-14, rtol=0)
    torch.testing.assert_close(found.weights.sum(-1), torch.ones(3, 1, 6, dtype=torch.float64))
    assert (found.weights[1, :, :, 2:] == 0).all() and (found.weights[1, :, :, :2] > 0).all()


def test_the_recurrence_uses_those_weights_too(monkeypatch):
    """Let every look fall on one place: the logits are then those of a writer that is told that place."""
    model = make("bahdanau")
    looking, source = model.decoder.layers[0], torch.tensor([SOURCES[0]])
    memory = model.encode(source)
    there = torch.full((1, 1, 5), -1e9, dtype=torch.float64)
    there[..., 2] = 0.0
    monkeypatch.setattr(AdditiveCore, "scores", lambda self, query, key: there.expand(1, query.shape[1], 5))
    states, context = looking(model.tokens(TARGETS[:1]), memory.first[:, 0], memory.answers)
    torch.testing.assert_close(context, memory.answers.values[:, 2:3].expand(1, 6, -1))
    state = memory.first[0, 0]
    for n, token in enumerate(TARGETS[0]):
        maps = [
            torch.cat([looking.input.weight, looking.context.weight], 1),
            looking.input.bias, looking.state.weight, looking.state.bias,
        ]  # fmt: skip
        state = unit(maps, torch.cat([model.tokens.weight[token], memory.answers.values[0, 2]]), state)
        torch.testing.assert_close(states[0, n], state, atol=1e-13, rtol=0)


def test_the_lookup_computes_its_weights_if_it_is_given_none():
    torch.manual_seed(1)
    attention = AdditiveAttention(state_width=4, memory_width=6, width=5).double()
    query, key, value = torch.randn(2, 3, 5), torch.randn(2, 7, 5), torch.randn(2, 7, 6)
    query, key, value = query.double(), key.double(), value.double()
    mask = Mask(keep=torch.tensor([[True] * 7, [True] * 4 + [False] * 3]))
    weights = attention.core.weights(query[:, None], key[:, None], mask)[:, 0]
    found = attention(query, key, value, mask=mask)
    torch.testing.assert_close(found, weights @ value)
    torch.testing.assert_close(attention(query, key, value, mask=mask, weights=weights), found)
    assert not torch.allclose(attention(query, key, value), found) and (weights[1, :, 4:] == 0).all()


def test_there_is_nothing_to_capture_in_one_vector():
    assert make("seq2seq").looks is None
    with pytest.raises(ConfigError, match="no attention matches"), capture(make("seq2seq")):
        pass


# -- learning ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "depth"), WAYS)
def test_one_batch_is_learned_by_heart(kind, depth):
    torch.manual_seed(0)
    model = ModelConfig.from_config(
        {"kind": kind, "vocab_size": 40, "width": 24, "depth": depth, "dropout": 0.0}
    ).build()
    batch = PairBatch.of(SOURCES, [[*text, 0] for text in TARGETS[:, 1:5].tolist()], start=0)
    rule, loss = torch.optim.Adam(model.parameters(), 0.02), TextToText()
    for _ in range(60):
        summed, count = loss(model, batch)
        rule.zero_grad()
        (summed / count).backward()
        rule.step()
    assert summed / count < 0.05
    texts = write(model, SOURCES, SearchConfig(beams=2, end=0), start=0, limits=[9] * 3)
    assert [one[0].tokens for one in texts] == TARGETS[:, 1:5].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_short_strings_are_reversed(kind):
    """New strings of up to five letters, all of them right."""
    torch.manual_seed(0)
    model = ModelConfig.from_config({"kind": kind, "vocab_size": 8, "width": 64, "dropout": 0.0}).build()
    rule, loss = MuonConfig(learning_rate=0.02, embedding_rate=0.015, head_rate=0.005).build(model), TextToText()
    schedule = torch.optim.lr_scheduler.LambdaLR(rule, lambda step: 1 - step / 500)
    drawn = torch.Generator().manual_seed(1)

    def strings(count):
        lengths = torch.randint(1, 6, (count,), generator=drawn).tolist()
        return [torch.randint(2, 8, (length,), generator=drawn).tolist() for length in lengths]

    for _ in range(500):
        texts = strings(64)
        summed, count = loss(model, PairBatch.of([[*t, 0] for t in texts], [[*t[::-1], 0] for t in texts], start=0))
        rule.zero_grad()
        (summed / count).backward()
        rule.step()
        schedule.step()
    asked = strings(200)
    found = write(model, [[*t, 0] for t in asked], SearchConfig(beams=1, end=0), start=0, limits=[9] * 200)
    assert [one[0].tokens for one in found] == [text[::-1] for text in asked]


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_is_drawn_while_learning_alone(kind):
    model = make(kind, 2, dropout=0.5)
    source = torch.tensor([SOURCES[0]])
    assert torch.equal(model(source, TARGETS[:1]), model(source, TARGETS[:1]))
    model.train()
    assert not torch.equal(model(source, TARGETS[:1]), model(source, TARGETS[:1]))


# -- what it is -------------------------------------------------------------------------------


def test_presets_and_parts():
    assert preset("seq2seq") == ("seq2seq", {}) and preset("bahdanau") == ("bahdanau", {})
    assert isinstance(Seq2SeqConfig(vocab_size=9).build(), Seq2Seq)
    model = BahdanauConfig(vocab_size=9, width=8, attention_width=5).build()
    assert isinstance(model, Bahdanau) and model.decoder.layers[0].attention.key.weight.shape == (5, 16)
    assert model.head.weight is model.tokens.weight and model.context == 256
    for config in (model.config, Seq2SeqConfig(vocab_size=9)):
        weights = {name: p.detach().clone() for name, p in config.build().named_parameters()}
        again = config.with_weights(weights)
        torch.manual_seed(3)
        source, target = torch.randint(0, 9, (2, 4)), torch.randint(0, 9, (2, 3))
        wanted = config.build()
        wanted.load_state_dict(weights, strict=False)
        assert torch.equal(again.eval()(source, target), wanted.eval()(source, target))


@pytest.mark.parametrize(("kind", "depth"), WAYS)
def test_the_cost_is_counted(kind, depth):
    """Every map once for each token, and not twice; in proportion to the tokens."""
    config = ModelConfig.from_config({"kind": kind, "vocab_size": 300, "width": 32, "depth": depth})
    cost = cost_of(config, batch=4, length=10)
    assert cost.parameters == sum(p.numel() for p in config.build().parameters())
    recurrent = sum(p.numel() for name, p in config.build().named_parameters() if "weight_" in name)
    head = 300 * 32
    assert cost.flops >= 5.5 * 40 * (recurrent + head)
    assert cost.flops < 12 * 40 * cost.parameters
    twice = cost_of(config, batch=8, length=10)
    assert twice.flops == 2 * cost.flops and twice.memory().total > cost.memory().total


def test_there_is_no_such_class_elsewhere():
    for config in (Seq2SeqConfig(vocab_size=9), BahdanauConfig(vocab_size=9)):
        with pytest.raises(UnsupportedError, match=f"not {config.kind}"):
            converter_for(config)


# -- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_bad_input_is_refused(kind):
    model = make(kind)
    source, keep = padded(SOURCES)
    memory = model.encode(source, keep)
    with pytest.raises(ShapeError, match="source has shape"):
        model.encode(torch.tensor(SOURCES[0]))
    with pytest.raises(ShapeError, match="target has shape"):
        model.states(TARGETS[0], memory)
    with pytest.raises(ShapeError, match="without tokens"):
        model.encode(source, keep & torch.tensor([[True], [False], [True]]))
    with pytest.raises(ShapeError, match="without tokens"):
        model.encode(source[:, :0])
    with pytest.raises(ShapeError, match="keep has shape"):
        model.encode(source, keep[:, :3])
    with pytest.raises(ShapeError, match="2 rows for states of 3"):
        model.states(TARGETS[:2], memory)
    with pytest.raises(ShapeError, match="2 caches for 1"):
        model.states(TARGETS, memory, caches=[StateCache(), StateCache()])
    behind = torch.tensor([[True] * 6, [True] * 4 + [False] * 2, [True] * 6])
    assert torch.equal(model.states(TARGETS, memory, keep=behind), model.states(TARGETS, memory))
    for given in ({"keep": behind.flip(1)}, {"keep": behind, "caches": model.new_caches()}):
        with pytest.raises(UnsupportedError, match="padding"):
            model.states(TARGETS, memory, **given)


def test_rows_that_share_no_source_are_refused():
    model, caches = make("bahdanau"), make("bahdanau").new_caches()
    memory = model.encode(torch.tensor([SOURCES[0], SOURCES[0]]))
    caches[0].add((torch.zeros(3, 12, dtype=torch.float64),), 1)
    with pytest.raises(ShapeError, match="3 rows for 2 sources"):
        model.states(TARGETS[:, :1], memory, caches=caches)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"start": 50}, "start = 50"),
        ({"depth": 0}, "depth"),
        ({"heads": 2}, "unknown field 'heads'"),
        ({"widht": 8}, "did you mean 'width'"),
        ({"dropout": 1.5}, "dropout"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_bad_settings_are_refused(kind, fields, words):
    with pytest.raises(ConfigError, match=words):
        ModelConfig.from_config({"kind": kind, "vocab_size": 50, **fields})


def test_a_state_cannot_be_taken_back_by_halves():
    cache = StateCache()
    cache.add((torch.ones(2, 3),), 4)
    assert cache.start == 4
    with pytest.raises(UnsupportedError, match="rewinding"):
        cache.rewind(2)
    with pytest.raises(ShapeError):
        cache.rewind(-1)
    cache.rewind(4)
    assert cache.length == 4
    cache.select(torch.tensor([1]))
    assert cache.state[0].shape == (1, 3)
    cache.rewind(0)
    assert cache.state is None and cache.start == 0
