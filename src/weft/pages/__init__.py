"""What every page that Weft writes is made of: one file that stands alone and asks for nothing."""

from weft.pages.charts import Bar, Dot, Line, bars, dot_chart, key, line_chart
from weft.pages.figures import beside, figure
from weft.pages.heat import heat_table
from weft.pages.shell import page
from weft.pages.tables import Html, table

__all__ = [
    "Bar",
    "Dot",
    "Html",
    "Line",
    "bars",
    "beside",
    "dot_chart",
    "figure",
    "heat_table",
    "key",
    "line_chart",
    "page",
    "table",
]
