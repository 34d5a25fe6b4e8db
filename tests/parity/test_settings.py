"""The tables of settings beside transformers' own classes: their names, and what they take if nothing is said."""

import pytest

from weft.models import Converter
from weft.models.field_table import Field, Only
from weft.models.hugging_face_config import FIRST_ALLOWED

transformers = pytest.importorskip("transformers")


def their_class(name):
    return type(transformers.AutoConfig.for_model(name))


def own_settings(name):
    """What the class has besides the settings of all classes."""
    every = set(transformers.PretrainedConfig().to_dict())
    return {key: value for key, value in their_class(name)().to_dict().items() if key not in every}


@pytest.mark.parametrize("name", Converter.registry)
def test_every_setting_of_theirs_has_a_row(name):
    """One that is new there, or was overlooked, might change what is computed."""
    assert set(own_settings(name)) - Converter.registry[name].fields.known == set()


@pytest.mark.parametrize("name", Converter.registry)
def test_what_is_not_said_is_what_they_take(name):
    theirs, compared = own_settings(name), 0
    for row in Converter.registry[name].fields.rows:
        for key in (key for key in row.keys if theirs.get(key) is not None):
            if isinstance(row, Field) and isinstance(row.default, int | float | str):
                assert row.default == theirs[key], key
                compared += 1
            elif isinstance(row, Only):
                absent = row.allowed[0] if row.absent is FIRST_ALLOWED else row.absent
                if absent is not None:  # null leaves it to other settings
                    assert absent == theirs[key], key
                    compared += 1
    assert compared >= 5
