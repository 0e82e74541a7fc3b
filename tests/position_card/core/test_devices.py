import os
import threading
import time

import numpy as np
import pytest
import torch

from position_card.core import devices
from tests import forked
from tests.refusals import refused


@pytest.mark.parametrize(
    ("given", "seen"), [("0,3", ["0", "3"]), ("", []), ("MIG-a", ["MIG-a"]), ("-1", []), ("0, -1,1", ["0"])]
)
def test_visible_gpus_are_those_of_the_environment(given, seen):
    assert devices.visible_gpus({"CUDA_VISIBLE_DEVICES": given}) == seen


def test_a_machine_without_gpus_computes_on_its_cpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for requested in ("auto", "cpu"):
        with devices.device(requested) as device:
            assert device == "cpu"
    with refused("device = 'cuda'"), devices.device("cuda"):
        pass


@pytest.mark.skipif(torch.backends.cuda.is_built(), reason="this torch can use a GPU")
@pytest.mark.parametrize("within_slurm", [False, True])
def test_a_torch_without_cuda_computes_on_the_cpu_where_it_may(monkeypatch, within_slurm):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    if within_slurm:
        monkeypatch.setenv("SLURM_JOB_ID", "7")
    with devices.device("auto") as device:
        assert device == "cpu"


@pytest.mark.parametrize(("gpus", "granted"), [(2, 2), (2, 3), (2, 0), (1, 1)])
def test_a_job_has_the_gpus_that_slurm_has_assigned(monkeypatch, gpus, granted):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    with devices.device("cuda", gpus, granted) as device:
        assert (device, os.environ["CUDA_VISIBLE_DEVICES"]) == ("cuda", "2,3")


@pytest.mark.parametrize("slurm", [False, True])
@pytest.mark.parametrize(
    ("gpus", "granted", "named"), [(3, 3, ("3 GPUs", "sees 2")), (2, 1, ("2 GPUs", "granted 1", "--resources gpu=2"))]
)
def test_a_job_does_not_start_on_fewer_gpus_than_it_needs(monkeypatch, slurm, gpus, granted, named):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    if slurm:
        monkeypatch.setenv("SLURM_JOB_ID", "7")
    with refused(*named), devices.device("cuda", gpus, granted):
        pass


def hold(gpus, visible, locks):
    """Hold GPUs, say which, and sleep."""
    os.environ.pop("SLURM_JOB_ID", None)
    os.environ["CUDA_VISIBLE_DEVICES"] = visible
    devices.LOCKS = locks
    with devices.device("cuda", gpus, poll_seconds=0.01):
        print(os.environ["CUDA_VISIBLE_DEVICES"])
        time.sleep(60)


@pytest.fixture
def start(tmp_path):
    """Start a process that holds GPUs; returns it, and what it says."""
    started = []

    def holding(gpus, visible):
        started.append(forked.start(hold, gpus, visible, tmp_path / "locks"))
        return started[-1]

    yield holding
    for process, said in started:
        process.kill()
        process.join()
        said.close()


def listen(stream):
    """What a process says first, once it has said it."""
    heard, said = [], threading.Event()

    def read():
        heard.append(stream.readline().strip())
        said.set()

    threading.Thread(target=read, daemon=True).start()
    return heard, said


def test_a_job_for_two_gpus_holds_none_while_it_waits(start):
    first, of_first = start(2, "4,5,6")
    assert of_first.readline().strip() == "4,5"
    second, said = listen(start(2, "4,5,6")[1])
    assert not said.wait(2)  # one is free
    assert start(1, "4,5,6")[1].readline().strip() == "6"
    assert not said.is_set()
    first.kill()
    assert said.wait(20)
    assert second == ["4,5"]


@pytest.mark.parametrize(("visible", "names"), [(None, ["H200", "L4"]), ("1", ["L4"]), ("GPU-a,7", ["H200", "7"])])
def test_gpus_are_called_what_nvidia_smi_calls_them(monkeypatch, tmp_path, visible, names):
    listing = tmp_path / "nvidia-smi"
    listing.write_text("#!/bin/sh\necho 'GPU 0: H200 (UUID: GPU-a)'\necho '  MIG x'\necho 'GPU 1: L4 (UUID: GPU-b)'\n")
    listing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert devices.gpu_names() == names


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
    assert devices.native_bf16("cpu") is native


PRODUCTS = torch.backends.mkldnn.matmul
WIDE = {"cpu_name": "AMD EPYC", "avx512_bw": True, "amx_bf16": False}  # a processor where oneDNN is faster
needs_onednn = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch was built without oneDNN")


@pytest.fixture
def products_restored():
    before = PRODUCTS.fp32_precision
    yield
    PRODUCTS.fp32_precision = before


@pytest.mark.usefixtures("products_restored")
def test_products_by_onednn_are_as_exact_as_float32():
    used = devices.multiply_by_onednn()
    assert used == (PRODUCTS.fp32_precision == "bf16")
    draw = np.random.default_rng(1).standard_normal
    for left, right in [((300, 48), (48, 96)), ((20, 33, 80), (20, 80, 33)), ((7, 256, 128), (7, 128, 16))]:
        a, b = draw(left).astype(np.float32), draw(right).astype(np.float32)
        sizes, exact = np.abs(a).astype(float) @ np.abs(b).astype(float), a.astype(float) @ b.astype(float)
        for other in (torch.from_numpy(b), torch.from_numpy(b.swapaxes(-1, -2).copy()).mT):
            found = (torch.from_numpy(a) @ other).numpy()
            assert (np.abs(found - exact) / sizes).max() < 2e-6  # bfloat16: .001


@pytest.mark.usefixtures("products_restored")
@pytest.mark.parametrize("earlier", ["none", "ieee"])
@pytest.mark.parametrize(
    "processor",
    [
        {"cpu_name": "AMD EPYC", "avx512_bw": True, "amx_bf16": True},
        {"cpu_name": "AMD EPYC", "avx2": True},
        {"cpu_name": "Intel(R) Xeon(R)", "avx512_bw": True, "amx_bf16": False},
        {"architecture": "aarch64", "bf16": True},
    ],
)
def test_other_processors_multiply_as_before(monkeypatch, processor, earlier):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: processor)
    PRODUCTS.fp32_precision = earlier
    assert not devices.multiply_by_onednn()
    assert PRODUCTS.fp32_precision == earlier


def rounded(monkeypatch, to):
    """Have products round their factors to another type where torch permits bfloat16, and be exact elsewhere."""

    def product(left, right):
        permitted = left.dtype == torch.float32 and PRODUCTS.fp32_precision == "bf16"
        factors = (part.to(to) if permitted else part for part in (left, right))
        return torch.mm(*(part.double() for part in factors)).to(left.dtype)

    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: WIDE)
    monkeypatch.setattr(torch.Tensor, "__matmul__", product)


@needs_onednn
@pytest.mark.usefixtures("products_restored")
@pytest.mark.parametrize(("to", "used"), [(torch.bfloat16, False), (torch.float16, False), (torch.float32, True)])
def test_a_processor_that_rounds_all_the_same_is_noticed(monkeypatch, to, used):
    PRODUCTS.fp32_precision = "ieee"
    rounded(monkeypatch, to)
    assert devices.multiply_by_onednn() == used
    assert PRODUCTS.fp32_precision == ("bf16" if used else "ieee")


@pytest.mark.usefixtures("products_restored")
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_the_autocast_of_a_caller_decides_nothing(monkeypatch, kind):
    rounded(monkeypatch, torch.bfloat16)
    with torch.autocast("cpu", kind):
        assert not devices.multiply_by_onednn()
    monkeypatch.undo()
    alone = devices.multiply_by_onednn()
    with torch.autocast("cpu", kind):
        assert devices.multiply_by_onednn() == alone


@pytest.mark.usefixtures("products_restored")
def test_random_numbers_of_a_caller_are_left_alone():
    before = torch.get_rng_state()
    devices.multiply_by_onednn()
    assert torch.equal(torch.get_rng_state(), before)
