"""What a pretended GPU refuses, as a real one does, and what it computes."""

import numpy as np
import pytest
import torch

from tests.pretend.pretended import gpus


@pytest.fixture
def x():
    with gpus(2):
        yield torch.arange(6.0, device="cuda").view(2, 3)


def test_a_tensor_is_where_it_was_asked_for_and_so_is_what_is_made_of_it(x):
    for made in (
        x.mT,
        x.clone(),
        x + 1,
        x.new_zeros(2),
        x.new_tensor([1.0]),
        torch.ones_like(x),
        x.sum(),
        x[x > 2],
        x.double(),
    ):
        assert (made.device, made.is_cuda, made.is_cpu) == (torch.device("cuda:0"), True, False)
    assert x.to("cuda:1").device == torch.device("cuda:1")
    assert x.cpu().device == torch.from_numpy(np.ones(2)).device == torch.device("cpu")


@pytest.mark.parametrize(
    "mixing",
    [
        lambda x: x @ torch.ones(3, 2),
        lambda x: x + torch.ones(2, 3),
        lambda x: torch.ones(2, 3).add_(x),
        lambda x: torch.cat([x, torch.ones(2, 3)]),
        lambda x: torch.equal(x, x.cpu()),
        lambda x: x.cpu()[torch.arange(2, device="cuda")],
        lambda x: x + x.to("cuda:1"),
        lambda x: torch.zeros(()).add_(x.sum()),
        lambda x: torch.rand(2, device="cuda", generator=torch.Generator()),
        lambda x: torch.rand(2, generator=torch.Generator("cuda")),
    ],
)
def test_tensors_of_two_devices_are_refused(x, mixing):
    with pytest.raises(RuntimeError, match=r"the tensors are on|type for generator"):
        mixing(x)


def test_numpy_is_given_no_tensor_of_a_gpu(x):
    for read in (torch.Tensor.numpy, np.asarray, lambda x: np.stack([x])):
        with pytest.raises(TypeError, match="can't convert cuda:0"):
            read(x)


def test_numbers_and_indices_may_come_from_the_cpu(x):
    expected = x.cpu() * 3
    assert ((x * torch.tensor(3.0)).cpu() == expected).all()
    assert (x[torch.arange(2)] == x).all()
    x[torch.arange(2)] = 1.5
    assert (x == 1.5).all()


def test_gradients_come_back_to_the_device_of_what_they_are_of(x):
    weights = torch.ones(3, device="cuda:1", requires_grad=True)
    seen = []
    weights.register_hook(lambda gradient: seen.append(gradient.device))
    (x @ weights.to("cuda:0")).sum().backward()
    assert [*seen, weights.grad.device] == [torch.device("cuda:1")] * 2
    assert weights.grad.tolist() == [3, 5, 7]
    x.requires_grad_().register_hook(lambda gradient: gradient + torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="the tensors are on cpu and cuda:0"):
        x.sum().backward()


def test_a_module_that_moves_keeps_its_parameters():
    with gpus():
        module = torch.nn.Linear(3, 2)
        before = list(module.parameters())
        module.to("cuda")
        assert all(one is other for one, other in zip(before, module.parameters(), strict=True))
        assert module.weight.is_cuda
        assert module(torch.ones(1, 3, device="cuda")).is_cuda
        with pytest.raises(RuntimeError, match="the tensors are on"):
            module(torch.ones(1, 3))


@pytest.mark.parametrize(("device", "dtype"), [("cuda", torch.bfloat16), ("cpu", torch.float32)])
def test_autocast_is_that_of_the_device(x, device, dtype):
    with torch.autocast(device, torch.bfloat16):
        assert (x @ x.mT).dtype == dtype


def test_nothing_is_left_when_the_context_is_closed():
    available = torch.cuda.is_available()
    with gpus():
        pass
    assert torch.cuda.is_available() == available
    assert torch.Generator().device == torch.device("cpu")
    with torch.autocast("cpu", torch.bfloat16):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
