"""Every converter in the registry: its settings go there and back, and it refuses what it cannot say.

For every field of a family's config, nested ones too, other values are made from its type. Each one must be read back
as it was, or be refused by a message that names the field, or be told as a loss: never left out silently. New families,
converters and fields are found by themselves.
"""

import dataclasses
import json
import random
import re
import types
from functools import cache
from typing import Annotated, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from weft.errors import ConfigError, UnsupportedError
from weft.models import Converter, GPTConfig, ModelConfig, converter_for
from weft.models.field_table import ByTensors, Field, FieldTable, Fixed, StartOnly, Together, at, flat
from weft.models.gpt.converters import GPT2Converter
from weft.models.hugging_face_config import HuggingFaceConfig
from weft.models.presets import presets

PRESETS = presets()

# -- other values of a field, by its type -----------------------------------------------------


def values_of(hint, value):
    """Some values that a field of this type may have; whether they fit the others, the config says."""
    origin, items = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return values_of(items[0], value)
    if origin in (Union, types.UnionType):
        return [one for item in items for one in values_of(item, value)]
    if origin is Literal:
        return list(items)
    if origin is tuple:
        inner = values_of(items[0], value[0] if value else None)
        return [(), *(tuple((inner * 8)[:n]) for n in (1, 2, 3)), tuple(2 * n for n in value if isinstance(n, int))]
    if hint is type(None):
        return [None]
    if hint is bool:
        return [True, False]
    if hint is int:
        now = value if isinstance(value, int) else 2
        return [now + 1, 2 * now, 4 * now, 1, 8]
    if hint is float:
        return [0.25, 0.5, 1.0, 3e-5, 0.0]
    if hint is str:
        return ["one", "two", "three"]
    raise AssertionError(f"say here which values a field of type {hint} may have")


def field_type(config, path):
    parent, _, name = path.rpartition(".")
    return get_type_hints(type(at(config, parent)), include_extras=True)[name]


@cache
def changed(config, path, value):
    """The config with one field changed; None if that is no config, or none of which a model can be built."""
    try:
        again = config.override({path: value})
        again.shapes()
    except (ConfigError, ArithmeticError):
        return None
    return again if at(again, path) != at(config, path) else None


@cache
def changes(config):
    """Every field of the config, and configs in which this one is another."""
    return [(path, list(others(config, path))) for path in flat(config)]


def others(config, path):
    if path.endswith(".kind"):
        registry = type(at(config, path.removesuffix(".kind"))).registry
        values = [kind for kind in registry if kind != "alternating"]
    else:
        values = values_of(field_type(config, path), at(config, path))
    return (one for value in values if (one := changed(config, path, value)) is not None)


# -- configs that a converter can say ---------------------------------------------------------


SMALL = {"vocab_size": 64, "width": 32, "depth": 1, "max_length": 16, "widths": (8, 16), "depths": (1, 1)}


@cache
def bases(converter):
    """Configs that it can say: the family's default with all that is fixed there, and with one field changed more."""
    family = converter.family
    names = {field.name for field in dataclasses.fields(family)}
    config = family(**{name: size for name, size in SMALL.items() if name in names})
    fixed = {row.ours: row.values[0] for row in converter.fields.rows if isinstance(row, Fixed)}
    for path, value in sorted(fixed.items(), key=lambda item: not item[0].endswith(".kind")):
        if at(config, path) is not dataclasses.MISSING:
            config = config.override({path: value})
    if at(config, "attention.heads") is not dataclasses.MISSING:
        config = config.override({"attention.heads": 4})
    found = [config, *(other for path, others in changes(config) for other in others)]
    by_kinds = {}
    for one in found:
        if not converter.reasons(one):
            kinds = tuple(value for path, value in flat(one).items() if path.endswith(".kind"))
            by_kinds.setdefault((kinds, bool(getattr(at(one, "head"), "classes", 0))), one)
    return list(by_kinds.values())


def there_and_back(converter, config):
    theirs = json.loads(json.dumps(converter.write_config(config)))
    return converter.read_config(HuggingFaceConfig(theirs))


@cache
def bones(config):
    """The modules of the model, without the shares of dropout."""
    return re.sub(r"(p|dropout)=[\d.e-]+", "", repr(config.skeleton()))


def silent_losses(converter, config):
    """Fields that are read back as something else although nobody said so."""
    again = there_and_back(converter, config)
    rows = {path: row for row in converter.fields.rows for path in row.paths}
    told = {loss.partition(" = ")[0] for loss in converter.losses(config)}
    lost = []
    for path, value in flat(config).items():
        row, found = rows.get(path), at(again, path)
        if (found == value and type(found) is type(value)) or path in told:
            continue
        if isinstance(row, Field) and value is None and row.resolve is not None and found == row.resolve(config):
            continue
        if isinstance(row, StartOnly | ByTensors) or (isinstance(row, Fixed) and row.holds(config)):
            continue  # what these claim is checked by `bones`
        lost.append(path)
    by_tensors = {row.ours: at(config, row.ours) for row in converter.fields.rows if isinstance(row, ByTensors)}
    if not lost and bones(again.override(by_tensors)) != bones(config):
        lost.append("another model")
    return lost


def names_field(path, reasons):
    """Whether one of the reasons has the field's name, or that of the part that it is a field of."""
    words = {path, path.removesuffix(".kind"), path.rpartition(".")[2], path.partition(".")[0]} - {"kind"}
    return any(re.search(rf"\b{re.escape(word)}\b", reason) for word in words for reason in reasons)


def faults(converter):
    """Everything that is wrong with a converter's settings; empty for a good one."""
    if not bases(converter):
        yield "there is no config that it can say"
    for base in bases(converter):
        yield from (f"{path} is claimed by no row" for path in flat(base) if path not in converter.fields.claimed)
        yield from (f"{path} is lost" for path in silent_losses(converter, base))
        for path, others in changes(base):
            for other in others:
                told = f"{path} = {at(other, path)!r}"
                if reasons := converter.reasons(other):
                    if not names_field(path, reasons):
                        yield f"{told} is refused, and not by its name: {reasons}"
                    continue
                yield from (f"with {told}, {lost} is lost" for lost in silent_losses(converter, other))


# -- all converters ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", Converter.registry)
def test_a_field_is_read_back_or_refused_by_its_name(name):
    assert list(faults(Converter.registry[name])) == []


@pytest.mark.parametrize("name", Converter.registry)
def test_every_field_can_be_changed(name):
    """Else the test above looks at nothing."""
    converter = Converter.registry[name]
    tried = {path for base in bases(converter) for path, others in changes(base) if others}
    never = {path for base in bases(converter) for path in flat(base)} - tried
    assert never <= {"position.two_way", "position.halves"} - tried, never  # T5 has no other; Marian's are below


@pytest.mark.parametrize("name", PRESETS)
def test_presets_go_there_and_back(name):
    family, fields = PRESETS[name]
    needs = (
        {"vocab_size": 99} if "vocab_size" in {f.name for f in dataclasses.fields(ModelConfig.registry[family])} else {}
    )
    config = ModelConfig.from_config({"kind": family, **needs, **fields})
    for converter in Converter.registry.values():
        if not converter.reasons(config):
            assert silent_losses(converter, config) == []


@pytest.mark.parametrize("name", Converter.registry)
def test_several_changes_at_once(name):
    converter, rng = Converter.registry[name], random.Random(0)
    said = 0
    for base in bases(converter):
        single = [other for _, others in changes(base) for other in others if not converter.reasons(other)]
        for _ in range(30):
            config = base
            for other in rng.sample(single, min(3, len(single))):
                path = next(path for path, value in flat(other).items() if at(base, path) != value)
                config = (path in flat(config) and changed(config, path, at(other, path))) or config
            if not converter.reasons(config):
                said += 1
                assert silent_losses(converter, config) == []
    assert said >= 20


@pytest.mark.parametrize("name", Converter.registry)
def test_what_the_tensors_say_is_in_the_tensors(name):
    converter = Converter.registry[name]
    rows = [row for row in converter.fields.rows if isinstance(row, ByTensors)]
    base = bases(converter)[0]
    for row in rows:
        ours = [base.override({row.ours: value}) for value in (True, False)]
        weights = [dict(config.build().named_parameters()) for config in ours]
        tables = [converter.table(config, prefix=converter.prefix) for config in ours]
        if weights[0].keys() == weights[1].keys():
            written = [table.write(weights[0]) for table in tables]
            assert any(not written[0][key].equal(written[1][key]) for key in written[0])
        else:
            names = [set(table.write(tensors)) for table, tensors in zip(tables, weights, strict=True)]
            read = [
                converter.fitted(there_and_back(converter, config), lambda n=n: n)
                for config, n in zip(ours, names, strict=True)
            ]
            assert [at(config, row.ours) for config in read] == [True, False]


# -- negative controls ------------------------------------------------------------------------


def with_rows(converter, rows):
    """The converter with other rows in its table; it is not in the registry."""
    return type("Changed", (type(converter),), {"fields": FieldTable(*rows)})()


@pytest.mark.parametrize("name", Converter.registry)
def test_a_converter_without_one_of_its_rows_is_found_out(name):
    converter = Converter.registry[name]
    for row in converter.fields.rows:
        if row.paths:
            without = with_rows(converter, [other for other in converter.fields.rows if other is not row])
            assert next(faults(without), None), f"nobody noticed that {row.paths} is gone"


@pytest.mark.parametrize("name", Converter.registry)
def test_a_row_that_writes_nothing_is_found_out(name):
    """The setting that a newcomer's converter left out."""
    converter = Converter.registry[name]
    for row in converter.fields.rows:
        if isinstance(row, Field | Together) and row.ours != "vocab_size":
            silent = Together(row.keys, row.paths, lambda theirs, row=row: row.read(theirs, {}), lambda config: {})
            rows = [silent if other is row else other for other in converter.fields.rows]
            try:
                found = next(faults(with_rows(converter, rows)), None)
            except Exception as error:  # a size that must be there is not
                found = str(error)
            assert found, f"nobody noticed that {row.keys} is not written"


class NewGPT(GPTConfig):
    """A GPT with a field that no converter has heard of."""

    temper: float = 1.0
    inner: ModelConfig = GPTConfig(vocab_size=3)


def test_a_new_field_refuses_the_export_unless_it_is_at_its_default():
    fields = PRESETS["gpt2"][1]
    assert converter_for(NewGPT(**fields)).name == "gpt2"
    with pytest.raises(UnsupportedError, match=r"temper = 0\.5 has no word there"):
        GPT2Converter().write_config(NewGPT(**fields, temper=0.5))
    with pytest.raises(UnsupportedError, match=r"inner\.width = 64 has no word there"):
        GPT2Converter().write_config(NewGPT(**fields, inner=GPTConfig(vocab_size=3, width=64)))
    assert "temper = 0.5 has no word there" in GPT2Converter().reasons(NewGPT(vocab_size=9, temper=0.5))


def test_two_rows_for_one_field_are_refused():
    with pytest.raises(ValueError, match=r"two rows .* 'width'"):
        FieldTable(Field("a", "width"), Fixed("width", 3))
    with pytest.raises(ValueError, match=r"two rows .* 'a'"):
        FieldTable(Field("a", "width"), Field("a", "depth"))
