"""On a GPU machine: `./vendor` (a bench of tirx-kernels) beside cuBLAS, in turn, with random normal values.

python vendor.py [gemm] [few] [attention]: a line for each shape with the chosen kernel, its time, the vendor's time and their ratio (above 1: ours is
faster), and the fastest candidate if the model chose another one.
"""
import math
import statistics
import subprocess
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

ours = subprocess.Popen(["./vendor"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(command):
    ours.stdin.write(command + "\n")
    ours.stdin.flush()
    return ours.stdout.readline().strip()


def graph(launches, count):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for launch in launches:
            launch()
    torch.cuda.current_stream().wait_stream(side)
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        for i in range(count):
            launches[i % len(launches)]()
    return recorded.replay


def milliseconds(run):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    run()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end)


def product(m, n, k, cold=False):
    copies = max(1, min(8, int(2.5e8 / (n * k * 2)))) if cold else 1
    candidates = ask(f"gemm {m} {n} {k} {copies}")
    a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    b = [torch.randn(n, k, device="cuda", dtype=torch.bfloat16) for _ in range(copies)]
    c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    count = 20 if 2 * m * n * k / 7e14 < 1e-4 or cold else 1
    theirs = graph([lambda b=b: torch.matmul(a, b.t(), out=c) for b in b], count)
    theirs()
    times = {}
    chosen = None
    for _ in range(30 if 2 * m * n * k < 3e11 else 15):
        answer = [x.split("|") for x in ask("go").split(";")]
        chosen = answer[0][0]
        for name, time in dict(answer).items():
            times.setdefault(name, []).append(float(time))
        times.setdefault("", []).append(milliseconds(theirs) * 1e3 / count)
    median = {name: statistics.median(values) for name, values in times.items()}
    vendor = median.pop("")
    best = min(median, key=median.get)
    line = f"{m} x {n} x {k}: {chosen} {median[chosen]:.1f} us {2 * m * n * k / median[chosen] / 1e6:.0f} TFLOP/s, vendor {vendor:.1f} us, ratio {vendor / median[chosen]:.3f}"
    if cold:
        line += f", {n * k * 2 / median[chosen] / 1e3:.0f} GB/s"
    if best != chosen:
        line += f" | best: {best} {median[best]:.1f} us, {vendor / median[best]:.3f}"
    print(line, flush=True)
    if "-v" in sys.argv:
        print("   ", candidates, flush=True)
    torch.cuda.empty_cache()
    return vendor / median[chosen], vendor / median[best]


def attention(batch, heads, of_k, length, head, causal):
    ask(f"attention {batch} {heads} {of_k} {length} {length} {head} {int(causal)}")
    q = torch.randn(batch, heads, length, head, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(batch, of_k, length, head, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    flops = 4 * batch * heads * length * length * head / (2 if causal else 1)
    count = 20 if 4 * batch * heads * length * length * head / 5e14 < 1e-4 else 1
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        run = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=heads != of_k)
        theirs = graph([run], count)
    theirs()
    ours_us, theirs_us = [], []
    for _ in range(20):
        ours_us.append(float(ask("go").split(";")[0].split("|")[1]))
        theirs_us.append(milliseconds(theirs) * 1e3 / count)
    o, t = statistics.median(ours_us), statistics.median(theirs_us)
    print(f"attention {batch} x {heads}/{of_k} x {length} x {head}{' causal' if causal else ''}: {o:.1f} us {flops / o / 1e6:.0f} TFLOP/s, "
          f"vendor {t:.1f} us {flops / t / 1e6:.0f}, ratio {t / o:.3f}", flush=True)
    return t / o


print(torch.cuda.get_device_name(), "PyTorch", torch.__version__, flush=True)
OF_8B = [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)]
OF_70B = [(10240, 8192), (57344, 8192), (8192, 28672)]
shapes = [(s, s, s) for s in (1024, 2048, 4096, 8192, 16384)]
shapes += [(tokens, n, k) for tokens in (128, 512, 2048, 8192) for n, k in OF_8B]
shapes += [(2048, n, k) for n, k in OF_70B]
def geomean(name, values):
    print(f"{name}: geomean {math.exp(sum(map(math.log, values)) / len(values)):.3f} of {len(values)}, least {min(values):.3f}", flush=True)


if "gemm" in sys.argv:
    ratios = [product(*shape) for shape in shapes]
    for name, values in zip(("chosen", "best"), zip(*ratios)):
        geomean(name, values)
if "few" in sys.argv:
    for tokens in (1, 4, 16, 64):
        for n, k in OF_8B:
            product(tokens, n, k, cold=True)
if "attention" in sys.argv:
    cases = [(max(1, 16384 // length), 16, 16 if head != 64 else 4, length, head, causal)
             for head in (64, 128, 256) for causal in (False, True) for length in (512, 1024, 2048, 4096, 8192, 16384)]
    geomean("attention", [attention(*case) for case in cases])
