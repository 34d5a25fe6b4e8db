"""Writing from sources: caches and company change no text, and a source is read once however many texts look at it."""

import pytest
import torch

from weft.generation import GenerationConfig, SearchConfig, beam_search, greedy, sample
from weft.generation.sources import SourceDecoding
from weft.generation.text_to_text import MAX_BATCH_TOKENS, MAX_ROWS, batches, limit_of, write
from weft.models import TransformerConfig
from weft.models.pair_model import padded

MEMORIES = ("last", "same", "joint")
END, START = 0, 1
SOURCES = [[3, 4, 5, 6, 7, 8, 2], [8, 9, 2], [11, 2], [9, 5, 5, 12, 2], [3, 9, 2]]
LIMITS = [9, 3, 12, 7, 12]


def make(memory="last", position="rotary"):
    """Random weights, and large ones: its texts are of all lengths, and differ."""
    torch.manual_seed(5)
    config = TransformerConfig(vocab_size=14, width=16, depth=2, max_length=16, memory=memory, dropout=0.0, start=START)
    model = config.override({"position.kind": position, "attention.heads": 2}).build().double().eval()
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.4)
    return model


class Recomputing:
    """A `Decoding` that keeps nothing: every step reads each source and all that is written."""

    def __init__(self, model, sources):
        self.model, self.rows = model, [(place, source, []) for place, source in enumerate(sources)]

    def step(self, tokens):
        grown = zip(self.rows, tokens.tolist(), strict=True)
        self.rows = [(place, source, [*text, token]) for (place, source, text), token in grown]
        sources, keep = padded([source for _, source, _ in self.rows])
        return self.model(sources, torch.tensor([text for _, _, text in self.rows]), source_keep=keep)[:, -1]

    def select(self, rows):
        self.rows = [self.rows[row] for row in rows.tolist()]

    def keep(self, sources):
        places = list(dict.fromkeys(place for place, _, _ in self.rows))
        kept = {places[n] for n in sources.tolist()}
        self.rows = [row for row in self.rows if row[0] in kept]


def searched(decoding, beams, how=beam_search):
    config = SearchConfig(beams=beams, best=beams, end=END, suppress=(START,))
    found = how(decoding, torch.full((len(SOURCES),), START), config, LIMITS)
    return found if how is beam_search else [[one] for one in found]


def check_same(ours, theirs):
    """The same texts in the same order, with the same scores."""
    assert [[h.tokens for h in found] for found in ours] == [[h.tokens for h in found] for found in theirs]
    assert [[h.ended for h in found] for found in ours] == [[h.ended for h in found] for found in theirs]
    scores = [torch.tensor([h.score for found in side for h in found]) for side in (ours, theirs)]
    torch.testing.assert_close(*scores, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("memory", "position"), [*((m, "rotary") for m in MEMORIES), ("joint", "sinusoidal")])
def test_with_caches_as_without(memory, position):
    model = make(memory, position)
    ours = searched(SourceDecoding(model, SOURCES), 3)
    check_same(ours, searched(Recomputing(model, SOURCES), 3))
    texts = [h.tokens for found in ours for h in found]
    assert len({tuple(text) for text in texts}) > len(SOURCES) and len({len(text) for text in texts}) > 2


def test_negative_control_another_memory_gives_other_texts():
    first, second = ([h.tokens for h in searched(SourceDecoding(make(m), SOURCES), 4)[0]] for m in ("last", "joint"))
    assert first != second


def test_a_beam_that_loses_its_memory_is_noticed(monkeypatch):
    """The negative control of `keep`: sources that leave, and memories that stay."""
    monkeypatch.setattr("weft.generation.sources.select_sources", lambda caches, sources: None)
    model = make()
    with pytest.raises(Exception):  # noqa: B017, PT011  a wrong text, or rows that no longer fit
        check_same(searched(SourceDecoding(model, SOURCES), 2), searched(Recomputing(model, SOURCES), 2))


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("beams", [1, 3])
def test_company_changes_nothing(memory, beams):
    model = make(memory)
    config = SearchConfig(beams=beams, best=beams, end=END, suppress=(START,))
    together = write(model, SOURCES, config, start=START, limits=LIMITS)
    alone = [
        write(model, [source], config, start=START, limits=[limit])[0]
        for source, limit in zip(SOURCES, LIMITS, strict=True)
    ]
    check_same(together, alone)
    assert all(len(found[0].tokens) <= limit for found, limit in zip(together, LIMITS, strict=True))


def test_draws_do_not_depend_on_company():
    model, config = make(), SearchConfig(beams=1, end=END, suppress=(START,))
    sampling = GenerationConfig(temperature=1.0, top_p=None, samples=3, seed=4)
    together = write(model, SOURCES, config, start=START, limits=LIMITS, sampling=sampling)
    alone = [
        write(model, [source], config, start=START, limits=[limit], sampling=sampling)[0]
        for source, limit in zip(SOURCES, LIMITS, strict=True)
    ]
    check_same(together, alone)
    assert len({tuple(h.tokens) for h in together[0]}) > 1
    again = sample(Recomputing(model, SOURCES), torch.full((5,), START), config, sampling, LIMITS)
    check_same(together, again)


@pytest.mark.parametrize("memory", MEMORIES)
def test_one_beam_is_greedy(memory):
    model = make(memory)
    check_same(searched(SourceDecoding(model, SOURCES), 1), searched(SourceDecoding(model, SOURCES), 1, how=greedy))
    check_same(searched(SourceDecoding(model, SOURCES), 1), searched(Recomputing(model, SOURCES), 1, how=greedy))


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_source_is_read_once(memory):
    """However many texts look at it and however long they get: one encoding, and its keys once in each layer."""
    model, read, asked = make(memory), [], []
    model.encoder.layers[0].register_forward_hook(lambda *_: read.append(1))
    for layer in model.decoder.layers:
        part = layer.attention if memory == "joint" else layer.cross_attention
        part.key.register_forward_hook(lambda _, inputs, __: asked.append(tuple(inputs[0].shape[:2])))
    searched(SourceDecoding(model, SOURCES), 4)
    assert len(read) == 1
    rows = padded(SOURCES)[0].shape
    whole = [shape for shape in asked if shape == rows]
    assert len(whole) == 2  # a layer each
    if memory != "joint":
        assert asked == whole
    else:
        assert all(length == 1 for _, length in asked if (_, length) != rows)  # only what is written


def test_beams_share_the_tables_of_their_source():
    """Nothing is copied for them: the table has a row for each source, and is the same memory after a step."""
    model = make()
    decoding = SourceDecoding(model, SOURCES)
    with torch.inference_mode():
        decoding.step(torch.full((5,), START))
        before = decoding.caches[0].memory.key.data_ptr()
        decoding.select(torch.arange(5).repeat_interleave(3))
        decoding.step(torch.full((15,), 4))
        table = decoding.caches[0].memory.key
        assert table.shape[0] == 5 and table.data_ptr() == before and decoding.rows == 15
        decoding.keep(torch.tensor([1, 4]))
        assert decoding.caches[0].memory.key.shape[0] == 2 and decoding.rows == 6
        assert repr(decoding) == "SourceDecoding(2 sources, 6 rows)"


# -- many at a time ---------------------------------------------------------------------------


def test_batches_are_bounded_and_have_everyone_once():
    lengths = [5, 4000, 17, 9000, 1, *[30] * 700]
    for beams in (1, 4, 300):
        found = list(batches(lengths, beams))
        assert sorted(place for batch in found for place in batch) == list(range(len(lengths)))
        flat = [lengths[place] for batch in found for place in batch]
        assert flat == sorted(flat, reverse=True)
        for batch in found:
            assert len(batch) == 1 or len(batch) * beams <= MAX_ROWS
            assert len(batch) == 1 or len(batch) * max(lengths[place] for place in batch) <= MAX_BATCH_TOKENS
    assert list(batches([], 4)) == []


def test_the_order_given_is_kept(monkeypatch):
    """Several batches, the longest first, and still each text at its place."""
    model, config = make(), SearchConfig(beams=2, end=END, suppress=(START,))
    together = write(model, SOURCES, config, start=START, limits=LIMITS)
    monkeypatch.setattr("weft.generation.text_to_text.MAX_ROWS", 4)
    check_same(write(model, SOURCES, config, start=START, limits=LIMITS), together)
    back = write(model, SOURCES[::-1], config, start=START, limits=LIMITS[::-1])
    check_same(back[::-1], together)
    assert write(model, [], config, start=START, limits=[]) == []


def test_how_long_a_text_may_get():
    assert [limit_of(n, 256) for n in (1, 10, 100)] == [23, 50, 256]
