"""Throughput of cuBLAS and cuDNN on this GPU, through PyTorch: the reference for our figures.

Prints one line for each: bfloat16 products of square matrices (A times the transpose of B) and attention without a mask (head
dimension 128). Times are medians of single launches between CUDA events, as those of the kernels that are compared.
"""

import statistics

import torch
import torch.nn.functional as functional
from torch.nn.attention import SDPBackend, sdpa_kernel


def milliseconds(run, times=20):
    for _ in range(3):
        run()
    spans = []
    for _ in range(times):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        spans.append(start.elapsed_time(end))
    return statistics.median(spans)


def report(name, operations, span):
    print(f"{name}: {span:.3f} ms, {operations / span / 1e9:.0f} TFLOP/s", flush=True)


def main():
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__)
    for n in (4096, 8192):
        a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        report(f"cuBLAS bfloat16 {n}x{n}x{n}", 2 * n**3, milliseconds(lambda: torch.matmul(a, b.T)))
    batch, heads, length, dim = 4, 16, 8192, 128
    q, k, v = (torch.randn(batch, heads, length, dim, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    operations = 4 * batch * heads * length * length * dim
    for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION):
        with sdpa_kernel(backend):
            span = milliseconds(lambda: functional.scaled_dot_product_attention(q, k, v), 10)
        report(f"{backend.name} {batch}x{heads}x{length}x{dim}", operations, span)


if __name__ == "__main__":
    main()
