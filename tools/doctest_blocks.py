"""For the pages of the API: examples in docstrings become code blocks, where Markdown would see quotations."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class DoctestBlocks(Extension):
    """Fences every run of lines that begins with a prompt."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = _EXAMPLE.sub(lambda m: f"```pycon\n{m.group(0)}\n```", obj.docstring.value)
