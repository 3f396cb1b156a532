"""The module twins: the function's defaults, its numbers, its documentation, and a stub that says the same."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest
import torch
from torch import nn

import plackett
from plackett import functional, losses
from plackett.losses.registry import LOSSES, PER_CALL, TENSORS, Loss
from plackett.modules import MODULES, LossModule, PLDLoss
from tests.cases import random_case
from tools import stubs

TWINS = [entry for entry in LOSSES.values() if entry.module is None]


@pytest.mark.parametrize("entry", TWINS, ids=lambda e: e.name)
def test_function_and_module_share_every_default(entry: Loss) -> None:
    assert entry.function is not None
    function = inspect.signature(getattr(functional, entry.function.__name__)).parameters
    module = inspect.signature(MODULES[entry.name]).parameters
    forward = inspect.signature(MODULES[entry.name].forward).parameters
    options = {n: p.default for n, p in function.items() if n not in (*TENSORS, *PER_CALL)}
    assert {n: p.default for n, p in module.items()} == options
    assert set(forward) - {"self"} == set(function) - set(options)


@pytest.mark.parametrize("entry", TWINS, ids=lambda e: e.name)
def test_function_and_module_give_the_same_number(entry: Loss) -> None:
    assert entry.function is not None
    case = random_case(6, 6)._asdict()
    if entry.features:
        given = [torch.randn(6, 4, 3, 3), torch.randn(6, 4, 3, 3)]
    else:
        given = [case[name] for name in entry.tensors]
    function = getattr(functional, entry.function.__name__)
    assert torch.equal(MODULES[entry.name]()(*given), function(*given))
    named = dict(zip(entry.tensors, given, strict=True))
    assert torch.equal(MODULES[entry.name]()(**named), function(**named))


def test_options_are_held_and_shown() -> None:
    loss = PLDLoss(temperature=4.0, label_weight=1.0)
    case = random_case()
    assert torch.equal(loss(*case), functional.pld(*case, temperature=4.0, label_weight=1.0))
    assert repr(loss) == "PLDLoss(temperature=4.0, label_weight=1.0)"


def test_options_are_attributes_that_can_be_read_and_changed() -> None:
    loss = PLDLoss(temperature=4.0)
    assert loss.temperature == 4.0
    assert loss.label_weight is None
    loss.temperature = 2.0
    assert torch.equal(loss(*(case := random_case())), functional.pld(*case, temperature=2.0))


def test_a_tensor_option_moves_with_the_module() -> None:
    loss = PLDLoss(weights=torch.ones(11))
    assert [name for name, _ in loss.named_buffers()] == ["weights"]
    assert loss.double().weights.dtype == torch.float64
    assert torch.isfinite(loss(*random_case()))


def test_mask_and_num_items_go_to_forward() -> None:
    case = random_case()
    mask = torch.rand(7) < 0.5
    assert torch.equal(PLDLoss()(*case, mask=mask, num_items=3), functional.pld(*case, mask=mask, num_items=3))


@pytest.mark.parametrize("entry", TWINS, ids=lambda e: e.name)
def test_modules_copy_pickle_and_nest(entry: Loss) -> None:
    module = MODULES[entry.name]()
    assert repr(copy.deepcopy(module)) == repr(pickle.loads(pickle.dumps(module))) == repr(module)
    assert isinstance(nn.ModuleList([module])[0], LossModule)


@pytest.mark.parametrize("name", losses.names())
def test_every_loss_has_a_complete_card_and_documentation(name: str) -> None:
    card = losses.card(name)
    for field in ("title", "equation", "paper", "defaults", "deviations"):
        assert len(getattr(card, field).strip()) > 3, field
    assert bool(card.layers) == LOSSES[name].features
    documented = LOSSES[name].function or LOSSES[name].module
    assert ">>>" in (documented.__doc__ or "")
    assert card.text(name).startswith(f"{name}: ")


def test_every_public_name_is_there() -> None:
    for name in plackett.__all__:
        assert getattr(plackett, name) is not None
    assert {entry.module_name for entry in LOSSES.values()} <= set(plackett.__all__)
    assert set(plackett.__all__) <= set(dir(plackett))
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = plackett.nothing_like_it


def test_the_stub_is_fresh() -> None:
    assert stubs.PATH.read_text() == stubs.text(), "the losses' signatures changed: run `make stubs`"


def test_a_new_loss_is_one_small_file(tmp_path: object) -> None:
    """What a file in losses/ does, done here: the register, the twin and an objective take it as any other."""
    from plackett.losses.registry import Card, loss
    from plackett.twins import twin

    @loss(Card("Squared error", "(s - t)^2", "none", "weight 1", "none"), module="SquaredLoss", name="squared")
    def squared(student: torch.Tensor, teacher: torch.Tensor, *, scale: float = 1.0) -> torch.Tensor:
        return scale * (student - teacher).square().mean()

    try:
        functional_squared = functional._public(LOSSES["squared"])
        functional.squared = functional_squared
        module = twin(LOSSES["squared"])
        case = random_case()
        assert torch.equal(module(scale=2.0)(case.student, case.teacher), 2 * squared(case.student, case.teacher))
    finally:
        del LOSSES["squared"], functional.squared
