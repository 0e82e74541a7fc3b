import torch

from position_bias.small_networks.repeated import Repeated


def test_a_cpu_computes_every_time():
    calls = []

    def compute(x, y):
        calls.append(1)
        return [x * y + len(calls)]

    repeated = Repeated(compute)
    x = torch.arange(3.0)
    assert [repeated(x, torch.tensor(factor))[0].tolist() for factor in (2.0, 3.0)] == [[1, 3, 5], [2, 5, 8]]
