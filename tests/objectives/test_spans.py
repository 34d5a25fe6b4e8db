"""How much is hidden for a model that writes: T5's numbers unless somebody says otherwise."""

import pytest

from weft.data import Spans
from weft.errors import ConfigError
from weft.objectives import SpanConfig


def test_settings_become_the_rule():
    assert SpanConfig().spans == Spans() == Spans(0.15, 3.0, True)
    assert SpanConfig.from_dict({"share": 0.3, "span": 5, "anywhere": False}).spans == Spans(0.3, 5.0, False)


@pytest.mark.parametrize(("field", "value"), [("share", 0), ("share", 1.5), ("span", 0.5)])
def test_what_cannot_be_is_refused(field, value):
    with pytest.raises(ConfigError, match=field):
        SpanConfig(**{field: value})
