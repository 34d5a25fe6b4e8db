"""Searches against all texts there are, against each other, and with models that misbehave."""

import itertools
import math

import pytest
import torch

from fixtures.searches import END, START, FakeDecoding, random_logits, run_search
from weft.errors import ConfigError, ShapeError, UnsupportedError
from weft.generation import GenerationConfig, SearchConfig, beam_search, greedy, sample


def make_config(**changes):
    return SearchConfig(**({"end": END} | changes))


def all_texts(logits, source, limit, alpha, forced=False):
    """(score, tokens, ended) of every text there is, best first."""
    found = []

    def grow(text, total):
        gains = logits(source, text).log_softmax(0).tolist()
        length = len(text) + 1
        if forced and length == limit:
            found.append((total / length**alpha, list(text), False))
            return
        for token, gain in enumerate(gains):
            if token == END:
                found.append(((total + gain) / length**alpha, list(text), True))
            elif length == limit:
                found.append(((total + gain) / length**alpha, [*text, token], False))
            else:
                grow((*text, token), total + gain)

    grow((), 0.0)
    return sorted(found, key=lambda one: -one[0])


def plain(hypotheses):
    return [(round(one.score, 9), one.tokens, one.ended) for one in hypotheses]


@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize("alpha", [0, 0.6, 1, 2])
def test_enough_beams_find_the_best_of_all_texts(alpha, forced):
    config = make_config(beams=400, best=7, alpha=alpha, end_at_limit=forced)
    for seed in range(3):
        logits = random_logits(seed)
        (found, other), _ = run_search(logits, [0, 1], config, [4, 3])
        for source, limit, ours in ((0, 4, found), (1, 3, other)):
            best = all_texts(logits, source, limit, alpha, forced)[:7]
            assert plain(ours) == [(round(score, 9), tokens, ended) for score, tokens, ended in best]


def test_few_beams_do_not_always_find_the_best():
    wrong = 0
    for seed in range(8):
        ((found,),), _ = run_search(random_logits(seed), [0], make_config(beams=1), [4])
        wrong += found.tokens != all_texts(random_logits(seed), 0, 4, 1.0)[0][1]
    assert 0 < wrong < 8


def test_alpha_decides_which_text_is_best():
    lengths = dict.fromkeys((0, 1, 4), 0)
    for seed, alpha in itertools.product(range(5), lengths):
        ((found,),), _ = run_search(random_logits(seed), [0], make_config(beams=400, alpha=alpha), [4])
        lengths[alpha] += len(found.tokens)
    assert lengths[0] < lengths[1] < lengths[4]


def test_scores_are_log_probabilities_by_length():
    (found,), _ = run_search(random_logits(3, words=30), [0], make_config(beams=5, best=5, alpha=0.6), [6])
    assert {one.ended for one in found} == {True, False}
    for one in found:
        text = [*one.tokens, END] if one.ended else one.tokens
        logits = [random_logits(3, words=30)(0, tuple(text[:i])).log_softmax(0)[token] for i, token in enumerate(text)]
        assert one.log_probability == pytest.approx(float(sum(logits)))
        assert one.score == pytest.approx(one.log_probability / len(text) ** 0.6)


def test_one_beam_is_greedy():
    for alpha, forced, suppress in itertools.product((0, 1, 2), (False, True), ((), (3, 7))):
        config = make_config(beams=1, alpha=alpha, end_at_limit=forced, suppress=suppress)
        sources, limits = list(range(6)), [1, 2, 3, 5, 8, 13]
        beams, _ = run_search(random_logits(1, words=12), sources, config, limits)
        single, decoding = run_search(random_logits(1, words=12), sources, config, limits, how=greedy)
        assert single == [one for (one,) in beams]
        assert decoding.moved == 0
        assert {one.ended for one in single} == {True, False}
        for source, one in zip(sources, single, strict=True):
            for i, token in enumerate(one.tokens):
                logits = random_logits(1, words=12)(source, tuple(one.tokens[:i]))
                logits[list(suppress)] = -math.inf
                assert token == int(logits.argmax())


@pytest.mark.parametrize("beams", [1, 2, 4])
def test_company_does_not_matter(beams):
    config, sources = make_config(beams=beams, best=beams), list(range(9))
    limits = [3, 20, 7, 1, 20, 20, 2, 11, 20]
    together, _ = run_search(random_logits(2, words=40), sources, config, limits)
    for source, limit, found in zip(sources, limits, together, strict=True):
        (alone,), _ = run_search(random_logits(2, words=40), [source], config, [limit])
        assert found == alone
    (backwards), _ = run_search(lambda s, text: random_logits(2, words=40)(8 - s, text), sources, config, limits[::-1])
    assert backwards == together[::-1]


def likes_to_end(lengths, words=20):
    """Source n wants to end after lengths[n] tokens, not before."""

    def logits(source, text):
        values = random_logits(5, words=words, spread=0.1)(source, text)
        values[END] = 30.0 if len(text) >= lengths[source] else -30.0
        return values

    return logits


def test_who_is_done_leaves():
    lengths, beams = [2, 0, 5, 2], 3
    found, decoding = run_search(likes_to_end(lengths), range(4), make_config(beams=beams), [50] * 4)
    assert [len(one.tokens) for (one,) in found] == lengths
    # source 1 finds its empty text in the first step, and two worse ones in the second; then all others at once
    assert decoding.read == [4, 4 * beams, 3 * beams, beams, beams, beams]
    single, decoding = run_search(likes_to_end(lengths), range(4), make_config(), [50] * 4, how=greedy)
    assert [len(one.tokens) for one in single] == lengths
    assert decoding.read == [4, 3, 3, 1, 1, 1]


def test_the_best_come_first_and_differ():
    config = make_config(beams=6, best=6)
    for seed in range(5):
        (found,), _ = run_search(random_logits(seed, words=30), [0], config, [9])
        assert len(found) == 6
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        assert len({(tuple(one.tokens), one.ended) for one in found}) == 6
        (first, second), _ = (
            run_search(random_logits(seed, words=30), [0, 0], make_config(beams=6, best=2), [9, 9])[0],
            None,
        )
        assert first == found[:2] == second


def test_no_text_is_longer_than_its_limit():
    never = lambda source, text: random_logits(4, words=9)(source, text) - 50.0 * (torch.arange(9) == END)  # noqa: E731
    limits = [1, 2, 3, 8]
    for how in (beam_search, greedy):
        found, decoding = run_search(never, range(4), make_config(), limits, how=how)
        found = [one[0] for one in found] if how is beam_search else found
        assert [(len(one.tokens), one.ended) for one in found] == [(limit, False) for limit in limits]
        assert len(decoding.read) == 8
        forced, _ = run_search(never, range(4), make_config(end_at_limit=True), limits, how=how)
        forced = [one[0] for one in forced] if how is beam_search else forced
        assert [(len(one.tokens), one.ended) for one in forced] == [(limit - 1, False) for limit in limits]


def test_an_end_just_at_the_limit_is_an_end():
    found, _ = run_search(likes_to_end([3]), [0], make_config(), [4])
    assert found[0][0].ended and len(found[0][0].tokens) == 3


def test_suppressed_tokens_are_never_written_and_change_no_other_probability():
    logits = random_logits(6, words=30)
    (free,), _ = run_search(logits, [0], make_config(beams=4, best=4), [8])
    banned = tuple(sorted({token for one in free for token in one.tokens}))
    (found,), _ = run_search(logits, [0], make_config(beams=4, best=4, suppress=banned), [8])
    assert not {token for one in found for token in one.tokens} & set(banned)
    text = [*found[0].tokens, END] if found[0].ended else found[0].tokens
    total = sum(float(logits(0, tuple(text[:i])).log_softmax(0)[token]) for i, token in enumerate(text))
    assert found[0].log_probability == pytest.approx(total)
    (beyond,), _ = run_search(logits, [0], make_config(beams=4, best=4, suppress=(1000,)), [8])
    assert beyond == free


def test_the_best_text_may_be_empty():
    for how in (beam_search, greedy):
        found, decoding = run_search(likes_to_end([0], words=5), [0], make_config(), [10], how=how)
        one = found[0][0] if how is beam_search else found[0]
        assert one.tokens == [] and one.ended and one.log_probability == pytest.approx(0, abs=1e-9)
    assert len(decoding.read) == 1


def test_nothing_to_write_for():
    for how in (beam_search, greedy):
        assert run_search(random_logits(0), [], make_config(), [], how=how)[0] == []


def test_ties_give_different_texts_and_need_no_luck():
    flat = lambda source, text: torch.zeros(300)  # noqa: E731
    config = make_config(beams=4, best=4)
    (first, second), _ = run_search(flat, [0, 1], config, [3, 3])
    (alone,), _ = run_search(flat, [0], config, [3])
    assert first == second == alone
    assert len({(tuple(one.tokens), one.ended) for one in first}) == 4
    assert first[0].score == pytest.approx(-math.log(300))


# -- numbers that are none ---------------------------------------------------------------------


def finite(hypotheses):
    return all(math.isfinite(one.score) and math.isfinite(one.log_probability) for one in hypotheses)


@pytest.mark.parametrize("bad", [math.nan, -math.inf])
def test_nan_counts_as_impossible(bad):
    def holes(source, text):
        values = random_logits(7, words=12)(source, text)
        values[[2, 3, 11]] = bad
        return values

    def banned(source, text):
        values = random_logits(7, words=12)(source, text)
        values[[2, 3, 11]] = -1e9
        return values

    config = make_config(beams=4, best=4)
    ours, wanted = (run_search(logits, range(3), config, [6, 3, 9])[0] for logits in (holes, banned))
    assert all(finite(found) for found in ours)
    assert [[one.tokens for one in found] for found in ours] == [[one.tokens for one in found] for found in wanted]
    singles = run_search(holes, range(3), config, [6, 3, 9], how=greedy)[0]
    assert finite(singles) and not {2, 3, 11} & {token for one in singles for token in one.tokens}


@pytest.mark.parametrize("bad", [math.nan, -math.inf])
def test_where_nothing_is_possible_the_text_stays_as_it_is(bad):
    def dies(source, text):
        return torch.full((12,), bad) if source == 1 and len(text) == 2 else likes_to_end([4, 9, 4], 12)(source, text)

    together, _ = run_search(dies, range(3), make_config(beams=3, best=3), [8] * 3)
    assert all(finite(found) for found in together)
    assert [len(one.tokens) for one in together[1]] == [2, 2, 2] and not together[1][0].ended
    assert together[1][0].score == pytest.approx(together[1][0].log_probability / 2)
    assert [len(found[0].tokens) for found in together] == [4, 2, 4]
    (first, dead, last), _ = run_search(dies, range(3), make_config(), [8] * 3, how=greedy)
    assert [len(one.tokens) for one in (first, dead, last)] == [4, 2, 4]
    assert finite([first, dead, last]) and not dead.ended
    from_start, _ = run_search(lambda source, text: torch.full((12,), bad), [0], make_config(), [8])
    assert plain(from_start[0]) == [(0.0, [], False)]


def test_a_certain_token_costs_nothing():
    def certain(source, text):
        values = random_logits(8, words=12)(source, text)
        values[END if len(text) == 3 else 4] = math.inf
        return values

    for how in (beam_search, greedy):
        found, _ = run_search(certain, [0], make_config(), [8], how=how)
        one = found[0][0] if how is beam_search else found[0]
        assert one.tokens == [4, 4, 4] and one.log_probability == 0


def test_one_possible_text_is_enough():
    def narrow(source, text):
        values = torch.full((12,), -math.inf)
        values[END if len(text) == 2 else 5] = 0.0
        return values

    (found,), decoding = run_search(narrow, [0], make_config(beams=4, best=4), [9])
    assert plain(found) == [(0.0, [5, 5], True)]
    assert len(decoding.read) == 3


# -- by chance ---------------------------------------------------------------------------------


def draw(logits, sources, config, limits, **changes):
    options = GenerationConfig(**({"temperature": 1.0, "top_p": None, "samples": 3} | changes))
    decoding = FakeDecoding(logits, sources)
    return sample(decoding, torch.full((len(sources),), START), config, options, limits), decoding


def test_samples_do_not_depend_on_company():
    limits = [5, 20, 9, 1]
    together, decoding = draw(random_logits(9, words=12), range(4), make_config(), limits)
    assert decoding.read[:2] == [4, 9]  # the source with limit 1 has left
    for source, limit in enumerate(limits):
        (alone,), _ = draw(random_logits(9, words=12), [source], make_config(), [limit])
        assert alone == together[source] and len(alone) == 3
        assert all(one.ended or len(one.tokens) == limit for one in alone)
    assert len({tuple(one.tokens) for one in together[1]}) == 3
    other, _ = draw(random_logits(9, words=12), range(4), make_config(), limits, seed=1)
    assert other != together
    (more,), _ = draw(random_logits(9, words=12), [1], make_config(), [20], samples=5)
    assert more[:3] == together[1]


def test_samples_come_as_often_as_they_are_likely():
    logits = torch.tensor([0.0, 1.0, 2.0, -math.inf, math.nan])
    (found,), _ = draw(lambda source, text: logits, [0], make_config(), [1], samples=4000)
    shares = torch.zeros(5)
    for one in found:
        shares[END if one.ended else one.tokens[0]] += 1 / 4000
    wanted = torch.tensor([0.0, 1.0, 2.0]).softmax(0)
    assert (shares[:3] - wanted).abs().max() < 0.03 and shares[3:].sum() == 0


def test_scores_of_samples_are_the_models_own():
    (found,), _ = draw(random_logits(9, words=12), [0], make_config(), [6], temperature=3.0, top_k=4)
    for one in found:
        text = [*one.tokens, END] if one.ended else one.tokens
        total = sum(
            float(random_logits(9, 12)(0, tuple(text[:i])).log_softmax(0)[token]) for i, token in enumerate(text)
        )
        assert one.log_probability == pytest.approx(total) and one.score == pytest.approx(total / len(text))


def test_no_temperature_and_one_candidate_are_greedy():
    config, limits = make_config(suppress=(3,)), [4, 9, 20]
    wanted, _ = run_search(random_logits(9, words=12), range(3), config, limits, how=greedy)
    for changes in ({"temperature": 0.0}, {"top_k": 1}, {"min_p": 1.0}, {"temperature": 1e-4}):
        found, _ = draw(random_logits(9, words=12), range(3), config, limits, **changes)
        assert [[one.tokens for one in source] for source in found] == [[one.tokens] * 3 for one in wanted]


def test_a_repetition_penalty_sees_the_start_and_the_text():
    logits = lambda source, text: torch.tensor([0.0, 3.0, 2.9, 2.8, 2.7, 9.0])  # noqa: E731
    (found,), _ = draw(logits, [0], make_config(), [4], temperature=0.0, repetition_penalty=10.0, samples=1)
    assert found[0].tokens == [1, 2, 3, 4]  # the start is token 5


def test_a_sample_that_cannot_go_on_stays_as_it_is():
    dies = lambda source, text: torch.full((5,), math.nan if len(text) == 2 else 0.0)  # noqa: E731
    (found,), _ = draw(dies, [0], make_config(suppress=(0,), end=4), [9], samples=4)
    assert finite(found) and all(len(one.tokens) == 2 or one.ended for one in found)
    banned, _ = draw(random_logits(0), [0], make_config(suppress=(1, 2, 3, 4), end=0), [9], samples=1)
    assert banned[0][0].tokens == [] and banned[0][0].ended


# -- what is refused ---------------------------------------------------------------------------


def test_settings_that_cannot_be_honoured_are_refused():
    with pytest.raises(ConfigError, match="best 5 of 4"):
        make_config(best=5)
    with pytest.raises(ConfigError, match="suppressed"):
        make_config(suppress=(END,))
    with pytest.raises(ConfigError, match="alpha"):
        make_config(alpha=-1)
    with pytest.raises(ConfigError, match="'end'"):
        SearchConfig()
    for how in (beam_search, greedy):
        with pytest.raises(ConfigError, match="at most 0"):
            run_search(random_logits(0), [0, 1], make_config(), [3, 0], how=how)
        with pytest.raises(ShapeError, match="3 limits"):
            run_search(random_logits(0), [0, 1], make_config(), [3, 3, 3], how=how)
    for changes in ({"stop": ("x",)}, {"alternatives": 2}):
        with pytest.raises(UnsupportedError, match="stop"):
            draw(random_logits(0), [0], make_config(), [3], **changes)
