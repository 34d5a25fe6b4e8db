"""Every model family of the registry, with every head that it can have, against the whole list of checks.

A family from elsewhere is found too: WEFT_PLUGINS=opt.py python -m pytest tests/conformance/test_families.py
"""

import itertools
from dataclasses import fields

import pytest

from conformance import family_checks, position_checks
from conformance.test_converters import bases, faults
from fixtures.families import Case, find_heads
from fixtures.plugins import GUIDES, restore_registries, write_plugins
from weft.blocks import PositionConfig
from weft.models import CausalLM, Converter, ImageConfig, ModelConfig, Seq2SeqLM
from weft.models.gpt.converters import GPT2Converter
from weft.plugins import load_all, load_plugin
from weft.weights import Change, Row, WeightTable

load_all()


def is_ours(config):
    return type(config).__module__.startswith("weft.")


def variants(kind):
    """A small config of the family for every head."""
    return {f"{kind} {head or ''}".strip(): Case(kind).config().override(head) for head in find_heads(kind)}


VARIANTS = {told: config for kind in ModelConfig.registry for told, config in variants(kind).items()}
CHECKS = [
    pytest.param(config, name, id=f"{told}: {name}")
    for told, config in VARIANTS.items()
    for name, one in family_checks.ALL.items()
    if one.applies(config) and not (one.stands and is_ours(config))
]


@pytest.mark.parametrize(("config", "name"), CHECKS)
def test_family(config, name):
    family_checks.ALL[name](config)


@pytest.mark.parametrize("classes", [0, 3])
@pytest.mark.parametrize("kind", [kind for kind in ModelConfig.registry if isinstance(VARIANTS.get(kind), ImageConfig)])
def test_a_head_of_images_with_a_hidden_layer(kind, classes):
    """Without classes it gives a vector for who asks for it, and the model is a trunk."""
    config = VARIANTS[kind].override({"head.hidden": 5, "head.classes": classes})
    family_checks.ALL["a_call_gives_the_logits_of_its_head"](config)


@pytest.mark.parametrize("name", Converter.registry)
def test_tensors_of_every_converter_go_there_and_back(name):
    converter = Converter.registry[name]
    for config in bases(converter):
        family_checks.tensors_go_there_and_back(converter, config)


def test_every_check_is_made_of_some_family():
    """Else one that never applies would look at nothing."""
    for name, one in family_checks.ALL.items():
        assert any(one.applies(config) for config in VARIANTS.values()), name


def test_who_writes_is_held_to_it():
    made = {(config.values[0].kind, config.values[1]) for config in CHECKS}
    for kind, cls in ModelConfig.registry.items():
        if CausalLM in cls.learns:
            assert (kind, "cached_equals_uncached_in_any_chunks") in made
        if Seq2SeqLM in cls.learns:
            assert (kind, "writing_in_any_chunks_equals_writing_at_once") in made


# -- a family from elsewhere ------------------------------------------------------------------


def test_the_family_of_the_guide_passes_all(tmp_path):
    if "opt" in ModelConfig.registry:
        pytest.skip("a plugin of this name is loaded already, and among the families above")
    write_plugins(GUIDES / "add-a-family.md", tmp_path)
    with restore_registries():
        load_plugin(tmp_path / "opt.py")
        for config in variants("opt").values():
            assert not is_ours(config) and family_checks.failures(config) == {}
            assert sum(one.applies(config) for one in family_checks.ALL.values()) >= 14
        converter = Converter.registry["opt"]
        assert list(faults(converter)) == []
        for config in bases(converter):
            family_checks.tensors_go_there_and_back(converter, config)
        for check in position_checks.ALL.values():
            check(PositionConfig.from_config("opt"))


# -- negative controls ------------------------------------------------------------------------


def broken(told, breaks):
    """The config of a model in which something is wrong."""
    config = VARIANTS[told]

    class Broken(type(config)):
        def build(self):
            model = super().build()
            breaks(model)
            return model

    return Broken(**{field.name: getattr(config, field.name) for field in fields(config)})


def forgets(model):
    """What was read before is not remembered."""
    read = model.hidden
    model.hidden = lambda tokens, *, keep=None, caches=None: read(tokens, keep=keep)


def forgets_what_it_wrote(model):
    write = model.states
    model.states = lambda target, memory, *, keep=None, caches=None: write(target, memory, keep=keep)


def reads_padding(model):
    read = model.hidden
    model.hidden = lambda tokens, *, keep=None, caches=None: read(tokens, caches=caches)


def reads_padding_of_sources(model):
    encode = model.encode
    model.encode = lambda source, keep=None: encode(source)


def takes_all_for_one_text(model):
    read = model.hidden
    model.hidden = lambda tokens, segments=None, keep=None, *, unpadded=None: read(tokens, segments)


def gives_states(model):
    model.forward = model.hidden


def gives_states_of_the_target(model):
    model.forward = lambda source, target: model.states(target, model.encode(source))


def says_other_than_its_head(model):
    answer = model.forward
    model.forward = lambda *given: 1.01 * answer(*given)


def pools_padding(model):
    say = model.class_logits
    model.class_logits = lambda hidden, keep=None, **row: say(hidden, **row)


def looks_ahead(model):
    layers = model.layers_in_order()[-1].layers
    layers[0].module.register_forward_hook(lambda _, given, output: output + 0.1 * given[0].roll(-1, 1))


def hears_other_rows(model):
    (stack,) = model.layers_in_order()
    stack.layers[0].module.register_forward_hook(lambda _, given, output: output + 0.1 * output.mean(0, keepdim=True))


NUMBERS = itertools.count(2)


def has_numbers_of_its_own(model):
    """That are drawn when it is built, and are no weights."""
    number = next(NUMBERS)
    (stack,) = model.layers_in_order()
    stack.layers[0].module.register_forward_hook(lambda _, given, output: output * number)


def has_two_names_for_a_layer(model):
    (stack,) = model.layers_in_order()
    model.layers_in_order = lambda: [type(stack)("", (*stack.layers, stack.layers[0]))]


def promises_another_length(model):
    model.example_inputs = lambda batch, length, make: (make((batch, length, 1), 20),)


NEXT, CLASSES = "lstm {'head': {'kind': 'next'}}", "bert {'head': {'kind': 'classes'}}"
BERT, TRUNK = "bert {'head': {'kind': 'masked'}}", "bert {'head': {'kind': 'none'}}"
READER, VIT = "gru {'head': {'kind': 'classes'}}", "vit {'head.classes': 3}"
BAG = "bag-of-words {'head': {'kind': 'classes'}}"
WRONG = [
    ("cached_equals_uncached_in_any_chunks", "gpt", forgets),
    ("cached_equals_uncached_in_any_chunks", NEXT, forgets),
    ("padding_on_either_side_changes_nothing", "gpt", reads_padding),
    ("a_later_token_never_reaches_an_earlier_logit", "gpt", looks_ahead),
    ("writing_in_any_chunks_equals_writing_at_once", "t5", forgets_what_it_wrote),
    ("padding_of_sources_changes_nothing", "transformer", reads_padding_of_sources),
    ("a_later_token_never_reaches_what_is_written_before", "t5", looks_ahead),
    ("states_of_padded_texts_are_those_alone", BERT, takes_all_for_one_text),
    ("texts_together_have_the_states_they_have_alone", BERT, takes_all_for_one_text),
    ("texts_together_have_the_states_they_have_alone", NEXT, hears_other_rows),
    ("texts_in_one_row_have_the_classes_they_have_alone", CLASSES, takes_all_for_one_text),
    ("padded_texts_have_the_logits_they_have_alone", BERT, takes_all_for_one_text),
    ("padded_texts_have_the_logits_they_have_alone", CLASSES, pools_padding),
    ("padded_texts_have_the_logits_they_have_alone", READER, pools_padding),
    *(
        ("a_call_gives_the_logits_of_its_head", told, gives_states)
        for told in ("gpt", NEXT, BERT, CLASSES, READER, VIT)
    ),
    ("a_call_gives_the_logits_of_its_head", "t5", gives_states_of_the_target),
    *(
        ("a_call_gives_the_logits_of_its_head", told, says_other_than_its_head)
        for told in (BERT, CLASSES, TRUNK, READER, VIT, "t5", BAG, "ngram", "skipgram")
    ),
    ("rows_of_a_batch_do_not_meet", "gpt", hears_other_rows),
    ("weights_are_all_of_a_model", "gpt", has_numbers_of_its_own),
    ("reach_is_what_gradients_find", "gpt", looks_ahead),
    ("layers_hold_all_matrices_between_input_and_head", "gpt", has_two_names_for_a_layer),
]


@pytest.mark.parametrize(("name", "told", "breaks"), WRONG, ids=lambda one: getattr(one, "__name__", str(one)))
def test_what_is_wrong_is_found(name, told, breaks):
    check = family_checks.ALL[name]
    assert check.applies(VARIANTS[told])
    check(VARIANTS[told])
    with pytest.raises(AssertionError):
        check(broken(told, breaks))


def test_example_inputs_of_another_shape_are_found():
    with pytest.raises(Exception, match="shape"):
        family_checks.ALL["example_inputs_can_be_called"](broken("gpt", promises_another_length))


def test_settings_that_are_lost_are_found():
    check = family_checks.ALL["settings_go_there_and_back"]
    with restore_registries():

        class Forgetful(type(VARIANTS["gpt"]), kind="forgetful"):
            def to_dict(self):
                return {name: value for name, value in super().to_dict().items() if name != "depth"}

        check(Forgetful(vocab_size=20))
        with pytest.raises(AssertionError):
            check(Forgetful(vocab_size=20, depth=3))


def test_tensors_that_do_not_come_back_are_found():
    class Doubled(GPT2Converter):
        def table(self, config, *, prefix):
            twice = Change(lambda tensor: tensor, lambda tensor: 2 * tensor)
            first, *others = super().table(config, prefix=prefix).rows
            return WeightTable(Row(first.foreign, first.ours, change=twice), *others)

    config = bases(Converter.registry["gpt2"])[0]
    family_checks.tensors_go_there_and_back(GPT2Converter(), config)
    with pytest.raises(AssertionError):
        family_checks.tensors_go_there_and_back(Doubled(), config)
