"""What is written from files into a page: the lines between two marks."""

from __future__ import annotations

import re


def between(page: str, what: str, text: str) -> str:
    """`page` with `text` between the marks of `what`.

    >>> between("a\\n<!-- costs: written by `make stubs` -->old<!-- end of costs -->\\nb", "costs", "new").split("\\n")
    ['a', '<!-- costs: written by `make stubs` -->', '', 'new', '', '<!-- end of costs -->', 'b']
    """
    begin, end = f"<!-- {what}: written by `make stubs` -->", f"<!-- end of {what} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"The page has no lines between {begin} and {end}.")
    return pattern.sub(lambda _: "\n\n".join([begin, text, end]), page)
