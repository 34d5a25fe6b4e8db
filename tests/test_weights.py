"""Weight tables: total (nothing left over, nothing missing) and reversible."""

import pytest
import torch

from weft.errors import WeightsError
from weft.weights import Change, Computed, Ignored, Row, Tied, WeightTable

TABLE = WeightTable(
    Row("wte.weight", "tokens.weight"),
    Row("h.{layer}.attn.weight", tuple(f"layers.{{layer}}.{n}.weight" for n in ("q", "k", "v")), transposed=True),
    Row("h.{layer}.attn.bias", tuple(f"layers.{{layer}}.{n}.bias" for n in ("q", "k", "v")), transposed=True),
    Row("h.{layer}.up.{part}", "layers.{layer}.up.{part}"),
    Tied("head.weight", same_as="wte.weight"),
    Ignored("h.{layer}.mask"),
)


def ours(layers=12):
    state = {"tokens.weight": torch.randn(5, 4)}
    for i in range(layers):
        for name, rows in (("q", 4), ("k", 2), ("v", 2)):
            state[f"layers.{i}.{name}.weight"] = torch.randn(rows, 4)
            state[f"layers.{i}.{name}.bias"] = torch.randn(rows)
        state[f"layers.{i}.up.0"] = torch.randn(3)
    return state


def shapes(state):
    return {name: tensor.shape for name, tensor in state.items()}


def test_there_and_back_is_bit_equal():
    state = ours()
    foreign = TABLE.write(state)
    assert foreign["h.11.attn.weight"].shape == (4, 8)
    assert foreign["h.11.attn.weight"].is_contiguous()
    assert torch.equal(foreign["h.3.attn.weight"][:, 4:6].t(), state["layers.3.k.weight"])
    again = TABLE.read(foreign, shapes(state))
    assert again.keys() == state.keys()
    assert all(torch.equal(again[name], state[name]) for name in state)


def test_tied_and_ignored_tensors_are_read_and_not_written():
    state = ours(1)
    foreign = TABLE.write(state)
    foreign |= {"h.0.mask": torch.ones(9), "head.weight": state["tokens.weight"].clone()}
    assert TABLE.write(TABLE.read(foreign, shapes(state))).keys() == foreign.keys() - {"h.0.mask", "head.weight"}
    foreign["head.weight"][0, 0] += 1
    with pytest.raises(WeightsError, match=r"'head.weight' differs from 'wte.weight'"):
        TABLE.read(foreign, shapes(state))


def changed(change):
    state = ours(2)
    foreign = TABLE.write(state)
    change(foreign)
    return foreign, shapes(state)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.update(stranger=torch.ones(1)), "holds a tensor 'stranger'"),
        (lambda f: f.update({"h.01.mask": torch.ones(1)}), "holds a tensor 'h.01.mask'"),
        (lambda f: f.pop("h.1.attn.bias"), "nothing in the file fills 'layers.1.q.bias' and 2 more"),
        (lambda f: f.update({"h.2.up.0": torch.ones(3)}), "'h.2.up.0' fills 'layers.2.up.0', not in this model"),
        (lambda f: f.update({"wte.weight": torch.ones(6, 4)}), r"shape \(6, 4\)\nexpected \(5, 4\) for tokens.weight"),
        (lambda f: f.update({"h.0.attn.weight": torch.ones(8, 4)}), r"shape \(8, 4\)\nexpected \(4, 8\)"),
    ],
)
def test_what_does_not_match_is_named(change, words):
    foreign, expected = changed(change)
    with pytest.raises(WeightsError, match=words):
        TABLE.read(foreign, expected)


def test_two_tensors_for_one_place_are_refused():
    table = WeightTable(Row("a", "x"), Row("b", "x"))
    with pytest.raises(WeightsError, match="both fill 'x'"):
        table.read({"a": torch.ones(1), "b": torch.ones(1)}, {"x": (1,)})


def test_a_parameter_that_no_row_writes_is_named():
    with pytest.raises(WeightsError, match="no row of the table writes 'extra'"):
        TABLE.write(ours(1) | {"extra": torch.ones(1)})
    state = ours(1)
    del state["layers.0.v.weight"]
    with pytest.raises(WeightsError, match=r"row 'h.\{layer\}.attn.weight' needs 'layers.0.v.weight'"):
        TABLE.write(state)


@pytest.mark.parametrize(
    "rows",
    [
        (Row("a", "x"), Row("a", "y")),
        (Row("a", ("x", "x")),),
        (Row("a.{i}", "x"),),
        (Row("a.{i}", "x.{j}"),),
        (Tied("a.{i}", same_as="b"),),
    ],
)
def test_a_table_that_cannot_be_reversed_is_refused(rows):
    with pytest.raises(WeightsError, match="row 'a"):
        WeightTable(*rows)


def test_parts_of_unequal_shape_and_missing_partners_are_named():
    with pytest.raises(WeightsError, match="shape"):
        WeightTable(Row("w", ("a", "b"))).read({"w": torch.ones(4, 3)}, {"a": (2, 3), "b": (2, 7)})
    with pytest.raises(WeightsError, match="'b', which it repeats, is missing"):
        WeightTable(Row("b", "x"), Tied("a", same_as="b")).read({"a": torch.ones(1)}, {})
    with pytest.raises(WeightsError, match="3 axes"):
        WeightTable(Row("w", "a", transposed=True)).read({"w": torch.ones(2, 2, 2)}, {"a": (2, 2, 2)})


def test_a_change_of_the_numbers_is_undone_bit_for_bit():
    table = WeightTable(
        Row("w", ("a", "b"), transposed=True, change=Change(lambda t: t.roll(1, 0), lambda t: t.roll(-1, 0))),
        Ignored("mask"),
    )
    state = {"a": torch.randn(2, 3), "b": torch.randn(4, 3)}
    foreign = table.write(state)
    assert torch.equal(foreign["w"].t(), torch.cat([state["a"], state["b"]]).roll(-1, 0))
    again = table.read(foreign, shapes(state))
    assert all(torch.equal(again[name], state[name]) for name in state)
    assert table.carries("w") and not table.carries("mask")
    with pytest.raises(WeightsError, match="'stranger'"):
        table.carries("stranger")


def test_axes_of_length_1_stand_around_ours_there():
    table = WeightTable(Row("token", "t", ones=(2, 0)), Row("map", "m", ones=(0, 2)))
    state = {"t": torch.randn(3), "m": torch.randn(1, 4)}
    foreign = table.write(state)
    assert foreign["token"].shape == (1, 1, 3) and foreign["map"].shape == (1, 4, 1, 1)
    again = table.read(foreign, shapes(state))
    assert all(torch.equal(again[name], state[name]) for name in state)
    for name, wrong in (("token", (2, 1, 3)), ("token", (1, 1, 4)), ("map", (1, 4, 1, 2)), ("map", (4, 1, 1))):
        with pytest.raises(WeightsError, match=f"{name!r} has shape"):
            table.read(foreign | {name: torch.zeros(wrong)}, shapes(state))


def test_a_vector_that_is_a_matrix_of_one_row_there():
    table = WeightTable(Row("bias", "b", ones=(1, 0)))
    foreign = table.write({"b": torch.arange(3.0)})
    assert foreign["bias"].shape == (1, 3)
    assert torch.equal(table.read(foreign, {"b": (3,)})["b"], torch.arange(3.0))
    for wrong in (torch.ones(2, 3), torch.ones(1, 4), torch.ones(3, 1)):
        with pytest.raises(WeightsError, match=r"expected \(1, 3\)"):
            table.read({"bias": wrong}, {"b": (3,)})


def test_numbers_that_are_computed_are_compared_and_not_written():
    table = WeightTable(Row("a", "a"), Computed("fixed", (2, 3), lambda: torch.arange(6.0).view(2, 3)))
    state, stored = {"a": torch.ones(1)}, torch.arange(6.0).view(2, 3)
    assert table.write(state).keys() == {"a"} and table.carries("fixed")
    for fine in (stored, stored + 0.009, torch.empty(2, 3, device="meta")):
        assert table.read({"a": state["a"], "fixed": fine}, {"a": (1,)}).keys() == {"a"}
    for wrong in (stored + 0.02, stored.flip(1), stored * torch.nan):
        with pytest.raises(WeightsError, match="'fixed' holds other numbers"):
            table.read({"a": state["a"], "fixed": wrong}, {"a": (1,)})
    for shape in ((3, 2), (2, 4), (6,)):
        with pytest.raises(WeightsError, match="'fixed' has shape"):
            table.read({"a": state["a"], "fixed": torch.empty(shape, device="meta")}, {"a": (1,)})


def test_shapes_can_be_checked_without_memory():
    state = ours(1)
    foreign = {name: torch.empty(t.shape, device="meta") for name, t in TABLE.write(state).items()}
    foreign["head.weight"] = torch.empty(5, 4, device="meta")
    assert all(t.is_meta for t in TABLE.read(foreign, shapes(state)).values())
    foreign["head.weight"] = torch.empty(6, 4, device="meta")
    with pytest.raises(WeightsError, match="differs"):
        TABLE.read(foreign, shapes(state))


def test_parts_do_not_share_memory_with_the_whole():
    state = {"a": torch.randn(2, 3), "b": torch.randn(2, 3)}
    table = WeightTable(Row("w", ("a", "b")))
    foreign = table.write(state)
    again = table.read(foreign, shapes(state))
    again["a"].zero_()
    assert torch.equal(foreign["w"][:2], state["a"])
