"""The model card: what a stranger must know to use the network, and what was measured of it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from plackett.exporting.timm_config import architecture
from plackett.models.packed import Packed

MOST_CLASSES = 50


def card(packed: Packed, title: str, figures: Mapping[str, str], conditions: str = "") -> str:
    """README.md of a hub folder.

    Args:
        packed: the network.
        title: its name.
        figures: what was measured, by what it is called: only what was measured.
        conditions: sentences on data, device and versions of the figures.
    """
    parts = [_head(packed), f"# {title}", _what(packed)]
    if figures:
        rows = ["| | measured |", "| --- | ---: |", *(f"| {name} | {value} |" for name, value in figures.items())]
        parts += ["## Figures", "\n".join(rows), *filter(None, [conditions])]
    else:
        parts += ["## Figures", "Nothing was measured when this folder was written."]
    parts += ["## Use", _use(packed), "## How it sees a picture", _sees(packed), "## Classes", _classes(packed)]
    if packed.about:
        parts += ["## How it was made", f"```json\n{json.dumps(packed.about, indent=2, ensure_ascii=False)}\n```"]
    return "\n\n".join(parts) + "\n"


def _head(packed: Packed) -> str:
    library = "timm" if packed.spec.startswith("timm:") else "plackett"
    tags = ["image-classification", *(["timm"] if library == "timm" else []), "plackett"]
    lines = ["---", f"library_name: {library}", "pipeline_tag: image-classification", "tags:"]
    return "\n".join([*lines, *(f"- {tag}" for tag in tags), "---"])


def _what(packed: Packed) -> str:
    sight, name = packed.sight, packed.spec.partition(":")[2] or packed.spec
    return (
        f"A classifier of {len(packed.classes)} classes on pictures of {sight.size} x {sight.size} pixels: "
        f"`{name}`, {sum(p.numel() for p in packed.network.parameters()):,} parameters."
    )


def _use(packed: Packed) -> str:
    if architecture(packed) is None:
        return _WITH_PLACKETT.format(spec=packed.spec)
    return _WITH_TIMM.replace("# ours\n", "" if packed.spec.startswith("timm:") else _REGISTER)


_WITH_TIMM = """```python
import timm
from PIL import Image
# ours

network = timm.create_model("local-dir:.", pretrained=True).eval()  # on the hub: "hf-hub:owner/name"
look = timm.data.create_transform(**timm.data.resolve_model_data_config(network))
logits = network(look(Image.open("picture.jpg").convert("RGB")).unsqueeze(0))
print(network.pretrained_cfg["label_names"][int(logits.argmax())])
```"""

_REGISTER = "from plackett.models import register_with_timm\n\nregister_with_timm()\n"

_WITH_PLACKETT = """The network is built by `{spec}`; its weights are `model.safetensors`.

```python
from pathlib import Path

from plackett.models.packed import load

packed = load(Path("."), trust=True)  # imports and calls what builds it
```"""


def _sees(packed: Packed) -> str:
    sight = packed.sight
    mean, std = (", ".join(f"{value:g}" for value in values) for values in (sight.mean, sight.std))
    return (
        f"RGB; the shorter side to {sight.resized} pixels ({sight.interpolation}, antialiased), the middle "
        f"{sight.size} x {sight.size}, values from 0 to 1, minus the mean ({mean}), divided by the std ({std}). "
        "`config.json` says the same to programs."
    )


def _classes(packed: Packed) -> str:
    shown = [f"{number}: {name}" for number, name in enumerate(packed.classes[:MOST_CLASSES])]
    rest = len(packed.classes) - len(shown)
    return "; ".join(shown) + (f"; and {rest} more, in `config.json`" if rest else "") + "."
