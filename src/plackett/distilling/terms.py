"""Objectives by name, as mappings for `Objective`: the paper's ImageNet settings, or whose they are where it has none.

Two things depend on who teaches whom: PLD's temperature, which the check suggests unless it is said, and the channels
that FitNet and VID project from and to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plackett import presets
from plackett.distilling.asked import Asked
from plackett.errors import InputError, did_you_mean
from plackett.experiments.recipes import merged
from plackett.experiments.sweep import changed_terms, own_term
from plackett.teachers.matched import listed

TITLES = {"fitnet": "FitNet", "listmle": "ListMLE", "position_listmle": "p-ListMLE"}
DATA = ("imagenet", "cifar100")  # whose settings stand for pictures of any kind, in this order
EMBEDDING = "embedding"
READS = {"at": "stages", "vid": "stages", "fitnet": "second", "sp": "last", "pkt": EMBEDDING, "rkd": EMBEDDING}
PROJECTED = ("fitnet", "vid")


def title(method: str) -> str:
    """
    >>> title("pld"), title("kd-reverse"), title("fitnet")
    ('PLD', 'KD-reverse', 'FitNet')
    """
    name, dash, rest = method.partition("-")
    return f"{TITLES.get(name, name.upper())}{dash}{rest}"


def methods(asked: Asked) -> dict[str, dict[str, Any]]:
    """By title the terms of every objective that was asked for, in that order."""
    if isinstance(asked.objective, Mapping):
        return {"+".join(map(title, asked.objective)): dict(asked.objective)}
    found = {}
    for name in dict.fromkeys(asked.objective):
        terms, changes = _preset(name), asked.changes.get(name)
        found[title(name)] = merged(terms, changed_terms(name, terms, changes)) if changes else terms
    for name in asked.changes:
        if name not in asked.objective:
            raise InputError(
                f"No objective {name!r} is trained, so nothing of it can be changed; name it in objective."
            )
    return found


def with_temperature(asked: Asked, found: Mapping[str, dict[str, Any]], suggested: float) -> dict[str, dict[str, Any]]:
    """PLD that was asked for by name alone takes the temperature that the check suggests."""
    said = asked.changes.get("pld", {})
    if isinstance(asked.objective, Mapping) or "pld" not in asked.objective or "temperature" in said:
        return dict(found)
    name = title("pld")
    return {**found, name: {**found[name], "pld": {**found[name]["pld"], "temperature": suggested}}}


def reads(found: Mapping[str, Mapping[str, Any]], stages: Sequence[str]) -> tuple[str, ...]:
    """Every feature that a term reads, once: those that it names, or of the `stages` those that its authors used."""
    each = (_taps(name, term, stages) for terms in found.values() for name, term in terms.items())
    return tuple(dict.fromkeys(tap for taps in each for tap in taps))


def projected(
    found: Mapping[str, Mapping[str, Any]],
    stages: Sequence[str],
    student: Mapping[str, int],
    teacher: Mapping[str, int],
) -> dict[str, dict[str, Any]]:
    """The same with taps by name, and for losses that project the channels of both networks, given by tap."""
    whole: dict[str, dict[str, Any]] = {}
    for method, terms in found.items():
        whole[method] = {}
        for name, term in terms.items():
            taps = list(_taps(name, term, stages))
            if not taps:
                whole[method][name] = term
                continue
            options = {**(term if isinstance(term, Mapping) else {"weight": term}), "taps": taps}
            if _loss(name, term) in PROJECTED:
                options.setdefault("student_channels", [student[tap] for tap in taps])
                options.setdefault("teacher_channels", [teacher[tap] for tap in taps])
            whole[method][name] = options
    return whole


def require_label_weight(found: Mapping[str, Mapping[str, Any]], missing: Sequence[str]) -> None:
    """PLD weighs the label by the teacher, who says nothing of a class that is `missing` from its own."""
    for terms in found.values():
        for name, term in terms.items():
            told = isinstance(term, Mapping) and term.get("label_weight") is not None
            if missing and _loss(name, term) == "pld" and not told:
                raise InputError(
                    f"The teacher does not offer {listed(missing)}, so that PLD has no weight for such labels: say "
                    f"what they are worth with objective.{name}.label_weight=1."
                )


def temperature(terms: Mapping[str, Any]) -> float | None:
    """At which the method's own term reads the teacher, where that is PLD."""
    own = own_term(terms)
    term = terms[own]
    if _loss(own, term) != "pld":
        return None
    return float(term.get("temperature", 1.0)) if isinstance(term, Mapping) else 1.0


def _preset(name: str) -> dict[str, Any]:
    known = {method: data for data in reversed(DATA) for method in presets.names(data)}
    if name not in known:
        raise InputError(f"There is no objective {name!r}; {did_you_mean(name, known)}.")
    if name in PROJECTED:  # their channels are seen later
        return dict(presets.find(known[name], name).terms)
    return dict(presets.get(known[name], name))


def _taps(name: str, term: Any, stages: Sequence[str]) -> tuple[str, ...]:
    loss = _loss(name, term)
    if isinstance(term, Mapping) and "taps" in term:
        return (term["taps"],) if isinstance(term["taps"], str) else tuple(term["taps"])
    if loss not in READS:
        return ()
    found = (EMBEDDING,) if READS[loss] == EMBEDDING else tuple(stages[_WHICH[READS[loss]]] or stages)
    if not found:
        raise InputError(
            f"The objective's term {name!r} reads stages of the networks, and these two share none by name: name "
            f"features of both with student_taps and teacher_taps, and which it reads with taps."
        )
    return found


_WHICH = {"stages": slice(None), "second": slice(1, 2), "last": slice(-1, None)}


def _loss(name: str, term: Any) -> str:
    return str(term.get("loss", name)) if isinstance(term, Mapping) else name
