"""On a machine with two GPUs: NCCL followed by cuBLAS, or by PyTorch's RMSNorm, for the shapes of the bench `ranks`.

python nccl.py: a line for each shape, microseconds. Medians of 30 runs of ten calls (100 of a norm) in a row on both GPUs, random normal
bfloat16 numbers.
"""
import os
import statistics

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

RUNS = 30


def microseconds(call, count):
    times = []
    for run in range(RUNS + 2):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        dist.barrier()
        start.record()
        for _ in range(count):
            call()
        end.record()
        torch.cuda.synchronize()
        if run >= 2:
            times.append(start.elapsed_time(end) * 1e3 / count)
    return statistics.median(times)


def report(rank, name, call, count=10):
    time = microseconds(call, count)
    if rank == 0:
        print(f"{name:<44} {time:>9.1f}", flush=True)


def work(rank, ranks):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=ranks, device_id=torch.device("cuda", rank))
    normal = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
    for m, n, k in [(8192, 8192, 8192), (8192, 4096, 8192), (2048, 28672, 8192), (2048, 14336, 8192), (2048, 5120, 8192), (8192, 5120, 8192)]:
        own, b, a, c = normal(m // ranks, k), normal(n, k), normal(m, k), normal(m, n)

        def gather():
            dist.all_gather_into_tensor(a, own)
            torch.matmul(a, b.t(), out=c)

        report(rank, f"all-gather, product: {m} x {n} x {k}", gather)
    for m, n, k in [(8192, 8192, 8192), (8192, 8192, 4096), (2048, 8192, 14336), (2048, 8192, 4096)]:
        a, b, full, c = normal(m, k), normal(n, k), normal(m, n), normal(m // ranks, n)

        def scatter():
            torch.matmul(a, b.t(), out=full)
            dist.reduce_scatter_tensor(c, full)

        report(rank, f"product, reduce-scatter: {m} x {n} x {k}", scatter)
    for rows in [1, 16, 128, 512, 2048]:
        x, residual, weight = normal(rows, 8192), normal(rows, 8192), normal(8192)

        def norm():
            dist.all_reduce(x)
            torch.nn.functional.rms_norm(residual.add_(x), (8192,), weight, 1e-5)

        report(rank, f"all-reduce, RMSNorm: {rows} x 8192", norm, 100)
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    mp.spawn(work, args=(2,), nprocs=2)
