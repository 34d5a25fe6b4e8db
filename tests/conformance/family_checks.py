"""What every model family must do, as functions of a config, as far as the config promises it. `ALL` is the list.

A check with `stands` is made of the families of weft in that file of tests too, with more variants; here it is for
families from elsewhere.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from fixtures.attention_maps import check_maps
from fixtures.families import draw_weights
from fixtures.operations import check_operations, usual_length
from fixtures.reach import check_reach
from weft.blocks.roles import weight_roles
from weft.cost.parts import parameters_by_part
from weft.errors import UnsupportedError
from weft.models import (
    CausalLM,
    ClassifiesImages,
    ClassifiesText,
    Converter,
    EncodesImages,
    EncodesText,
    FillsMasks,
    ImageConfig,
    LearnsByCounting,
    ModelConfig,
    Seq2SeqLM,
    TextRow,
    WordVectorTable,
)
from weft.models.capabilities import DOES, TagsTokens
from weft.models.sites import attentions
from weft.tasks.task import find_use

CHUNKS = (1, 2, 3, 5)
LENGTHS = (9, 4, 1)  # of the texts that are padded, packed or read side by side
VOCABULARY = 20


@dataclass(frozen=True)
class Check:
    """`applies`: whether a config promises what is checked."""

    function: Callable[[ModelConfig], None]
    applies: Callable[[ModelConfig], bool]
    stands: str = ""

    def __call__(self, config: ModelConfig) -> None:
        self.function(config)


ALL: dict[str, Check] = {}


def check(applies: Callable[[ModelConfig], bool], stands: str = "") -> Callable[[Callable[[ModelConfig], None]], Check]:
    def keep(function: Callable[[ModelConfig], None]) -> Check:
        ALL[function.__name__] = Check(function, applies, stands)
        return ALL[function.__name__]

    return keep


def promises(*capabilities: type) -> Callable[[ModelConfig], bool]:
    return lambda config: all(can in config.provides for can in capabilities)


def always(config: ModelConfig) -> bool:
    return True


def is_learned(config: ModelConfig) -> bool:
    return config.learned_in_steps


def is_called(config: ModelConfig) -> bool:
    """Whether the model says what it can be called with; one that counts takes tokens, and has no step to show."""
    try:
        return not is_learned(config) or bool(config.skeleton().example_inputs(1, 12, numbers))
    except UnsupportedError:
        return False


def reads_padding_of(method: str) -> Callable[[ModelConfig], bool]:
    """A model that reads whole texts, and has this method, which can be told of padding."""

    def applies(config: ModelConfig) -> bool:
        reads = {EncodesText, ClassifiesText} & config.provides and CausalLM not in config.provides
        found = getattr(config.skeleton(), method, None) if reads and is_called(config) else None
        return found is not None and "keep" in inspect.signature(found).parameters

    return applies


def has_attention(config: ModelConfig) -> bool:
    return config.learned_in_steps and bool(attentions(config.skeleton()))


def has_layers(config: ModelConfig) -> bool:
    return config.learned_in_steps and bool(config.skeleton().layers_in_order())


# -- models and inputs ------------------------------------------------------------------------


def made(config: ModelConfig, dtype: torch.dtype = torch.float64) -> torch.nn.Module:
    """The model with numbers in every weight, or with counts of random tokens."""
    torch.manual_seed(1)
    model = draw_weights(config.build()).to(dtype).eval()
    if isinstance(model, LearnsByCounting):
        ids = torch.randint(VOCABULARY, (2000,)).numpy()
        model.count(ids[:1800], ids[1800:], lambda _: None)
    return model


def tokens(*shape: int, seed: int = 2) -> Tensor:
    return torch.randint(VOCABULARY, shape, generator=torch.Generator().manual_seed(seed))


def numbers(shape: tuple[int, ...], below: int) -> Tensor:
    """A `Maker` of inputs in float64."""
    return torch.randint(below, shape) if below else torch.randn(shape, dtype=torch.float64)


def inputs_of(model: torch.nn.Module, batch: int) -> tuple[Tensor, ...]:
    torch.manual_seed(3)
    if isinstance(model, LearnsByCounting):  # it has no step of training to give an example of
        return (tokens(batch, 11),)
    found: tuple[Tensor, ...] = model.example_inputs(batch, 12, numbers)
    return found


HEADS = ((FillsMasks, "masked_logits"), (TagsTokens, "token_logits"), (ClassifiesImages, "class_logits"))


def results(model: torch.nn.Module, config: ModelConfig) -> dict[str, Tensor]:
    """What each of its heads gives for some inputs, and the states that they read."""
    like = next(model.parameters(), torch.zeros(0, dtype=torch.float64))
    found: dict[str, Tensor] = {}
    if is_called(config):
        given = [one.to(like.dtype) if one.is_floating_point() else one for one in inputs_of(model, 2)]
        found["call"] = model(*given)
        if {EncodesText, EncodesImages} & config.provides:
            found["states"] = model.hidden(*given)
    for can, head in HEADS:
        if can in config.provides:
            found[head] = getattr(model, head)(found["states"])
    if ClassifiesText in config.provides:
        found["text_logits"] = model.text_logits(TextRow.of(texts()))
    if WordVectorTable in config.provides:
        found["word_vectors"] = model.word_vectors
    assert found, f"{config.kind} gives nothing that could be compared"
    return found


def padded(texts: list[Tensor], side: str) -> tuple[Tensor, Tensor]:
    """Texts as rows, with other tokens on one side of the shorter ones; and which are real."""
    longest = max(map(len, texts))
    rows, keep = tokens(len(texts), longest, seed=5), torch.zeros(len(texts), longest, dtype=torch.bool)
    for row, text in enumerate(texts):
        place = slice(longest - len(text), longest) if side == "left" else slice(0, len(text))
        rows[row, place], keep[row, place] = text, True
    return rows, keep


def texts() -> list[Tensor]:
    return [tokens(length, seed=length) for length in LENGTHS]


def close(ours: Tensor, theirs: Tensor, what: object) -> None:
    assert ours.shape == theirs.shape, (what, ours.shape, theirs.shape)
    assert torch.allclose(ours, theirs, rtol=1e-9, atol=1e-10), (what, (ours - theirs).abs().max().item())


# -- going on with a text ---------------------------------------------------------------------


@check(promises(CausalLM))
def cached_equals_uncached_in_any_chunks(config: ModelConfig) -> None:
    model, given = made(config), tokens(2, 11)
    for size in CHUNKS:
        for capacity in (None, 11):
            caches, end = model.new_caches(capacity), 0
            for piece in given.split(size, 1):
                end += piece.shape[1]
                whole = model.next_logits(given[:, :end], caches=model.new_caches())
                close(model.next_logits(piece, caches=caches), whole, (size, capacity, end))


@check(promises(CausalLM))
def padding_on_either_side_changes_nothing(config: ModelConfig) -> None:
    """Also for what is read after it, in chunks."""
    model, more = made(config), tokens(len(LENGTHS), 5)
    for side in ("left", "right"):
        rows, keep = padded(texts(), side)
        caches = model.new_caches()
        found = [model.next_logits(rows, keep=keep, caches=caches)]
        found += [model.next_logits(piece, caches=caches) for piece in more.split(2, 1)]
        for row, text in enumerate(texts()):
            for read, part in zip((0, 2, 4, 5), found, strict=True):
                alone = torch.cat([text, more[row, :read]])[None]
                close(part[row], model.next_logits(alone, caches=model.new_caches())[0], (side, row, read))


@check(promises(CausalLM))
def a_later_token_never_reaches_an_earlier_logit(config: ModelConfig) -> None:
    model, given = made(config, torch.float32), tokens(2, 11)
    before = model(given)
    for place in (1, 6, 10):
        changed = given.clone()
        changed[:, place] = (changed[:, place] + 1) % VOCABULARY
        after = model(changed)
        assert torch.equal(after[:, :place], before[:, :place]), place
        assert not torch.equal(after[:, place], before[:, place]), f"the token at {place} is not read"


# -- one text from another --------------------------------------------------------------------


@check(promises(Seq2SeqLM))
def writing_in_any_chunks_equals_writing_at_once(config: ModelConfig) -> None:
    model, source, target = made(config), tokens(2, 9), tokens(2, 11, seed=4)
    whole = model.logits(model.states(target, model.encode(source)))
    for size in CHUNKS:
        caches, memory = model.new_caches(), model.encode(source)
        parts = [model.logits(model.states(piece, memory, caches=caches)) for piece in target.split(size, 1)]
        close(torch.cat(parts, 1), whole, size)


@check(promises(Seq2SeqLM))
def padding_of_sources_changes_nothing(config: ModelConfig) -> None:
    model, target = made(config), tokens(len(LENGTHS), 6)
    for side in ("left", "right"):
        rows, keep = padded(texts(), side)
        found = model.logits(model.states(target, model.encode(rows, keep)))
        for row, text in enumerate(texts()):
            close(found[row], model.logits(model.states(target[[row]], model.encode(text[None])))[0], (side, row))


@check(promises(Seq2SeqLM))
def a_later_token_never_reaches_what_is_written_before(config: ModelConfig) -> None:
    model, source, target = made(config, torch.float32), tokens(2, 9), tokens(2, 11, seed=4)
    before = model(source, target)
    for place in (1, 6, 10):
        changed = target.clone()
        changed[:, place] = (changed[:, place] + 1) % VOCABULARY
        after = model(source, changed)
        assert torch.equal(after[:, :place], before[:, :place]), place
        assert not torch.equal(after[:, place], before[:, place]), f"the token at {place} is not read"
    assert not torch.equal(model((source + 1) % VOCABULARY, target), before), "the source is not read"


# -- reading ----------------------------------------------------------------------------------


@check(reads_padding_of("hidden"))
def states_of_padded_texts_are_those_alone(config: ModelConfig) -> None:
    model = made(config)
    for side in ("left", "right"):
        rows, keep = padded(texts(), side)
        found = model.hidden(rows, keep=keep)
        for row, text in enumerate(texts()):
            close(found[row, keep[row]], model.hidden(text[None])[0], (side, row))


@check(reads_padding_of("forward"))
def padded_texts_have_the_logits_they_have_alone(config: ModelConfig) -> None:
    """Those of their tokens, or those of the whole text."""
    model = made(config)
    for side in ("left", "right"):
        rows, keep = padded(texts(), side)
        found = model(rows, keep=keep)
        for row, text in enumerate(texts()):
            close(found[row, keep[row]] if found.dim() == 3 else found[row], model(text[None])[0], (side, row))


@check(promises(EncodesText))
def texts_together_have_the_states_they_have_alone(config: ModelConfig) -> None:
    model, given = made(config), [text.numpy() for text in texts()]
    for text, found in zip(given, model.text_states(given), strict=True):
        (alone,) = model.text_states([text])
        close(found, alone, len(text))


@check(promises(ClassifiesText))
def texts_in_one_row_have_the_classes_they_have_alone(config: ModelConfig) -> None:
    model = made(config)
    together = model.text_logits(TextRow.of(texts()))
    for row, text in enumerate(texts()):
        close(together[[row]], model.text_logits(TextRow.of([text])), len(text))
    assert not torch.allclose(together[0], together[1]), "all texts have the same logits"


# -- all models -------------------------------------------------------------------------------


@check(lambda config: is_learned(config) and is_called(config), stands="tests/cost/test_flops.py")
def example_inputs_can_be_called(config: ModelConfig) -> None:
    model = config.build()
    assert torch.isfinite(model(*model.example_inputs(2, usual_length(config), numbers_of(torch.float32)))).all()


def numbers_of(dtype: torch.dtype) -> Callable[[tuple[int, ...], int], Tensor]:
    return lambda shape, below: numbers(shape, below) if below else numbers(shape, below).to(dtype)


@check(is_called)
def a_call_gives_the_logits_of_its_head(config: ModelConfig) -> None:
    """In the shape that the head promises, and what it reads from the states; a trunk gives these."""
    model = made(config)
    given = inputs_of(model, 2)
    answer = model(*given)
    shape, ways = read_by_its_head(model, config, given)
    assert answer.shape == shape, (answer.shape, shape)
    for way, found in ways.items():
        close(answer, found, way)


def read_by_its_head(
    model: torch.nn.Module, config: ModelConfig, given: tuple[Tensor, ...]
) -> tuple[tuple[int, ...], dict[str, Tensor]]:
    """The shape of its logits, and these by other ways than the call: from states, and from texts in one row."""
    can, first = config.provides, given[0]
    if WordVectorTable in can:
        scores = model.hidden(*given[:2]) @ model.output.weight.T
        compared = given[2:] or (torch.arange(config.vocab_size).expand(len(first), -1),)
        return tuple(compared[0].shape), {"output": scores.gather(1, compared[0])}
    if Seq2SeqLM in can:
        source, target = given
        found = model.logits(model.states(target, model.encode(source)))
        return (*target.shape, config.vocab_size), {"logits": found}
    if isinstance(model, LearnsByCounting):  # it has tables and no states
        parts = [model.next_logits(first[:, : n + 1], caches=model.new_caches()) for n in range(first.shape[1])]
        return (*first.shape, config.vocab_size), {"next_logits": torch.stack(parts, 1)}
    if CausalLM in can:
        return (*first.shape, config.vocab_size), {"logits": model.logits(model.hidden(first))}
    head, ways = getattr(config, "head", None), dict[str, Tensor]()
    if ClassifiesText in can:
        ways["text_logits"] = model.text_logits(TextRow.of(*(list(one) for one in given)))
        if EncodesText not in can:
            return (len(first), head.classes), ways
    states = model.hidden(*given)
    if FillsMasks in can:
        return (*first.shape, config.vocab_size), {"masked_logits": model.masked_logits(states)}
    if TagsTokens in can:
        return (*first.shape, len(head.labels)), {"token_logits": model.token_logits(states)}
    if {ClassifiesText, ClassifiesImages} & can:
        return (len(first), head.classes), ways | {"class_logits": model.class_logits(states)}
    if getattr(head, "pairs", False):
        return (len(first), head.answers[0]), {"pair_logits": model.pair_logits(states)}
    assert states.dim() == 3 and len(states) == len(first), "a trunk has a state for each token or place"
    return tuple(states.shape), {"hidden": states}


@check(is_called)
def rows_of_a_batch_do_not_meet(config: ModelConfig) -> None:
    model = made(config)
    given = inputs_of(model, 3)
    found = model(*given)
    for row in (0, len(found) - 1):
        close(found[[row]], model(*(one[[row]] for one in given)), row)
    if len(found) > 1:
        assert not torch.equal(found[0], found[1]), "all rows are the same"


@check(always)
def weights_are_all_of_a_model(config: ModelConfig) -> None:
    """What a run keeps (parameters, or the tables of counts) makes the same model: bit for bit the same result."""
    model = made(config, torch.float32)
    kept = dict(model.named_parameters()) or model.state_dict()
    again = config.with_weights({name: tensor.detach().clone() for name, tensor in kept.items()}).eval()
    before, after = (results(one, config) for one in (model, again))
    for head, found in before.items():
        assert torch.equal(after[head], found), head
    assert not any(p.is_meta for p in (*again.parameters(), *again.buffers()))


@check(always)
def settings_go_there_and_back(config: ModelConfig) -> None:
    written = json.loads(json.dumps(config.to_dict()))
    assert ModelConfig.from_config(written) == type(config).from_dict(config.to_dict()) == config
    assert ModelConfig.from_toml(config.to_toml()) == config
    assert written["kind"] == config.kind


@check(is_learned, stands="tests/cost/test_flops.py")
def operations_are_those_of_a_run(config: ModelConfig) -> None:
    for length in (16, 32, 48) if isinstance(config, ImageConfig) else (7, 40, 57):
        check_operations(config, 2, length)


@check(has_layers, stands="tests/analysis/test_model_reach.py")
def reach_is_what_gradients_find(config: ModelConfig) -> None:
    check_reach(config, made(config, torch.float32))


@check(has_attention, stands="tests/analysis/test_attention_maps.py")
def maps_reproduce_the_outputs(config: ModelConfig) -> None:
    model = made(config)
    check_maps(model, inputs_of(model, 2), {})


@check(always, stands="tests/conformance/test_roles.py")
def every_parameter_is_in_one_group(config: ModelConfig) -> None:
    """Every parameter is in one group, and has a part."""
    model = config.skeleton()
    groups = model.parameter_groups()
    assert list(groups) == ["embeddings", "matrices", "head", "vectors"]
    grouped = [p for members in groups.values() for p in members.values()]
    assert len(grouped) == len(set(grouped)) == len(list(model.parameters()))
    assert all(p is model.get_parameter(name) for members in groups.values() for name, p in members.items())
    assert set(parameters_by_part(model)) <= {role.part for role in weight_roles(model).values()}


@check(always, stands="tests/conformance/test_roles.py")
def layers_hold_all_matrices_between_input_and_head(config: ModelConfig) -> None:
    """Layers hold all matrices between input and head, each once."""
    model = config.skeleton()
    sites = [site for stack in model.layers_in_order() for site in stack.layers]
    assert all(model.get_submodule(site.name) is site.module for site in sites)
    inside = [p for site in sites for module in (*site.before, site.module) for p in module.parameters()]
    assert len(inside) == len(set(inside)), "a weight in two layers"
    roles, matrices = weight_roles(model), model.parameter_groups()["matrices"]
    assert {name for name, p in matrices.items() if p not in set(inside)} == {
        name for name in matrices if roles[name].stands == "input"
    }
    names = [stack.name for stack in model.layers_in_order()]
    assert names in ([], [""], ["encoder", "decoder"])


@check(always, stands="tests/conformance/test_capabilities.py")
def a_model_is_what_its_config_promises(config: ModelConfig) -> None:
    """A model has what its config promises."""
    model = config.build()
    for can in config.provides:
        assert isinstance(model, can), f"{config} promises {can.__name__}"
    assert config.mostly in DOES and find_use(config)[1].first


def tensors_go_there_and_back(converter: Converter, config: ModelConfig) -> None:
    """Written as another program stores them and read again, weights are the same, bit for bit."""
    model = made(config, torch.float32)
    ours = {name: p.detach() for name, p in model.named_parameters()}
    foreign = converter.table(config, prefix=converter.prefix).write(ours)
    again = converter.table_for(config, foreign).read(foreign, config.shapes())
    assert again.keys() == ours.keys()
    assert all(torch.equal(again[name], tensor) for name, tensor in ours.items())


def failures(config: ModelConfig) -> dict[str, str]:
    """Which checks a config does not pass, and why."""
    found = {}
    for name, one in ALL.items():
        try:
            if one.applies(config):
                one(config)
        except (AssertionError, UnsupportedError) as error:
            found[name] = str(error)
    return found
