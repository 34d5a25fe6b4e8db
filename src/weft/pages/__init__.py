"""What every page that Weft writes is made of: one file that stands alone and asks for nothing."""

from weft.pages.shell import page
from weft.pages.tables import table

__all__ = ["page", "table"]
