import numpy as np
import pytest
import torch

from position_bias.running import products

SETTING = torch.backends.mkldnn.matmul

pytestmark = [
    pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch was built without oneDNN"),
    pytest.mark.usefixtures("products_restored"),
]


def rounding(product, spoil):
    """The product on a processor that spoils float32 where torch lets it round, and is exact elsewhere."""

    def on_such_a_processor(*operands):
        exact = product(*(operand.double() for operand in operands))
        if operands[0].dtype != torch.float32:
            return exact
        return spoil(product, operands) if SETTING.fp32_precision == "bf16" else exact.float()

    return on_such_a_processor


def factors_rounded(to):
    return lambda product, operands: product(*(operand.to(to).double() for operand in operands)).float()


def not_a_number(product, operands):
    return torch.full_like(product(*operands), torch.nan)


def transposed_factors_rounded(product, operands):
    to = torch.double if operands[-1].is_contiguous() else torch.bfloat16
    return product(*(operand.to(to).double() for operand in operands)).float()


def one_element_wrong(product, operands):
    result = product(*(operand.double() for operand in operands)).float()
    result.view(-1)[-1] += 1e-2
    return result


BFLOAT16 = factors_rounded(torch.bfloat16)
SPOILT = (BFLOAT16, not_a_number, transposed_factors_rounded, one_element_wrong)


def pretend(monkeypatch, spoil, places):
    """Have the products at these `places` of what is tried run on a processor that spoils them."""
    tried = [
        (rounding(product, spoil) if place in places else product, shapes)
        for place, (product, shapes) in enumerate(products.TRIED)
    ]
    monkeypatch.setattr(products, "TRIED", tried)


ALL = range(len(products.TRIED))


@pytest.mark.parametrize("earlier", ["none", "bf16"])
@pytest.mark.parametrize("spoil", SPOILT)
def test_a_processor_that_rounds_is_refused_whatever_was_set_before(monkeypatch, spoil, earlier):
    SETTING.fp32_precision = earlier
    pretend(monkeypatch, spoil, ALL)
    assert products.fastest() == "default"
    assert SETTING.fp32_precision == "none"


@pytest.mark.parametrize("place", ALL)
def test_a_processor_that_rounds_a_single_kind_of_product_is_refused(monkeypatch, place):
    pretend(monkeypatch, BFLOAT16, [place])
    assert products.fastest() == "default"
    assert SETTING.fp32_precision == "none"


def tiles(product):
    """The product on a processor that rounds where torch lets it: as autocast has it, or the setting of products."""

    def on_such_a_processor(*operands):
        rounds = SETTING.fp32_precision == "bf16" and operands[0].dtype == torch.float32
        return BFLOAT16(product, operands) if rounds else product(*operands)

    return on_such_a_processor


def test_a_processor_that_rounds_is_refused_under_autocast(monkeypatch):
    """Autocast rounds as that processor does, so that what is compared would look alike."""
    monkeypatch.setattr(products, "TRIED", [(tiles(product), shapes) for product, shapes in products.TRIED])
    SETTING.fp32_precision = "none"
    with torch.autocast("cpu", torch.bfloat16):
        assert products.fastest() == "default"


def test_a_processor_that_is_exact_is_made_use_of(monkeypatch):
    pretend(monkeypatch, factors_rounded(torch.double), ALL)
    assert products.fastest() == "oneDNN"
    assert SETTING.fp32_precision == "bf16"


def test_what_is_used_multiplies_as_exactly_as_float32():
    """Against float64, of numpy, at shapes that the trial does not have."""
    draw = np.random.default_rng(1).standard_normal
    used = products.fastest()
    assert (used == "oneDNN") == (SETTING.fp32_precision == "bf16")
    for left, right in [((300, 48), (48, 96)), ((20, 33, 80), (20, 80, 33)), ((7, 256, 128), (7, 128, 16))]:
        a, b = draw(left).astype(np.float32), draw(right).astype(np.float32)
        sizes = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
        exact = a.astype(np.float64) @ b.astype(np.float64)
        for one in (torch.from_numpy(b), torch.from_numpy(b.swapaxes(-1, -2).copy()).mT):
            found = (torch.from_numpy(a) @ one).numpy()
            assert found.dtype == np.float32
            assert np.max(np.abs(found - exact) / sizes) < 2e-6  # bfloat16: 1e-3


def test_the_global_random_state_is_left_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    products.fastest()
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("earlier", ["none", "bf16", "ieee"])
@pytest.mark.parametrize("fails_under", ["none", "bf16"])
@pytest.mark.parametrize("error", [RuntimeError("could not create a primitive"), KeyboardInterrupt()])
def test_where_a_product_fails_the_earlier_setting_stays(monkeypatch, earlier, fails_under, error):
    """What torch raises for a product that it cannot do is no error; anything else is passed on."""

    def fails(*operands):
        if SETTING.fp32_precision == fails_under and operands[0].dtype == torch.float32:
            raise error
        return torch.mm(*operands)

    SETTING.fp32_precision = earlier
    monkeypatch.setattr(products, "TRIED", [(fails, [(4, 5), (5, 6)])])
    if isinstance(error, RuntimeError):
        assert products.fastest() == ("oneDNN" if earlier == "bf16" else "default")
    else:
        with pytest.raises(KeyboardInterrupt):
            products.fastest()
    assert SETTING.fp32_precision == earlier


def test_without_onednn_nothing_is_tried(monkeypatch):
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    monkeypatch.setattr(products, "_trial", lambda: pytest.fail("something was tried"))
    SETTING.fp32_precision = "ieee"
    assert products.fastest() == "default"
    assert SETTING.fp32_precision == "ieee"


@pytest.mark.parametrize(
    ("capabilities", "native"),
    [
        ({"avx512_f": True, "avx512_bf16": False, "amx_bf16": False}, False),
        ({"avx512_bf16": True}, True),
        ({"amx_bf16": True}, True),
        ({"architecture": "aarch64", "bf16": True}, True),
        ({"architecture": "aarch64"}, False),
    ],
)
def test_native_bf16_of_a_cpu(monkeypatch, capabilities, native):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    assert products.native_bf16("cpu") is native
