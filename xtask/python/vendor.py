"""On a GPU machine: `./vendor` (a bench of tirx-kernels) beside cuBLAS and cuDNN, in turn, with random normal values.

python vendor.py [gemm] [few] [fused] [gated] [fp8] [scaled] [grouped] [sampling] [experts] [attention] [packed]
[backward]: a line for each shape with the chosen kernel, its time, the vendor's time and their ratio (above 1: ours is
faster), and the fastest candidate if the model chose another one.
"""
import inspect
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


def compare(name, command, theirs, count, flops):
    """Our candidates for a command and the vendor's graph in turn: the ratios of the chosen one and of the fastest."""
    theirs()
    times = {}
    for _ in range(20):
        answer = [x.split("|") for x in ask("go").split(";")]
        chosen = answer[0][0]
        for candidate, time in dict(answer).items():
            times.setdefault(candidate, []).append(float(time))
        times.setdefault("", []).append(milliseconds(theirs) * 1e3 / count)
    median = {candidate: statistics.median(values) for candidate, values in times.items()}
    vendor = median.pop("")
    best = min(median, key=median.get)
    rates = [f" {flops / time / 1e6:.0f} TFLOP/s" if flops else "" for time in (median[chosen], vendor)]
    line = f"{name}: {chosen} {median[chosen]:.1f} us{rates[0]}, vendor {vendor:.1f} us{rates[1]}, ratio {vendor / median[chosen]:.3f}"
    if best != chosen:
        line += f" | best: {best} {median[best]:.1f} us, {vendor / median[best]:.3f}"
    print(line, flush=True)
    if "-v" in sys.argv:
        print("   ", command, flush=True)
    return vendor / median[chosen], vendor / median[best]


def one(command, theirs, flops):
    """Times a kernel that has no candidates beside the vendor's launches, which a graph repeats as often as ours."""
    ask(command)
    count = 20 if flops / 7e14 < 1e-4 else 1
    ratio = compare(command, command, graph([theirs], count), count, flops)[0]
    torch.cuda.empty_cache()
    return ratio


def normal(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def fused(m, n, k):
    """Bias and GELU by the hyperbolic tangent: the epilogue of cuBLASLt."""
    a, b, bias = normal(m, k), normal(n, k), normal(n)
    return one(f"fused {m} {n} {k}", lambda: torch._addmm_activation(bias, a, b.t(), use_gelu=True), 2 * m * n * k)


def gated(m, n, k):
    """Beside one product by both matrices and nothing more: the vendor has no gate."""
    a, b = normal(m, k), normal(2 * n, k)
    c = torch.empty(m, 2 * n, device="cuda", dtype=torch.bfloat16)
    return one(f"gated {m} {n} {k}", lambda: torch.matmul(a, b.t(), out=c), 4 * m * n * k)


def fp8(m, n, k):
    a, b = (normal(rows, k).to(torch.float8_e4m3fn) for rows in (m, n))
    scale = torch.full((), 0.5, device="cuda")
    run = lambda: torch._scaled_mm(a, b.t(), scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16, use_fast_accum=True)
    return one(f"fp8 {m} {n} {k}", run, 2 * m * n * k)


def scaled(m, n, k):
    """Scales of blocks, beside the share of the peak that DeepGEMM publishes: 1,550 of 1,979 TFLOP/s."""
    ask(f"scaled {m} {n} {k}")
    time = statistics.median(float(ask("go").split(";")[0].split("|")[1]) for _ in range(20))
    rate = 2 * m * n * k / time / 1e6
    print(f"scaled {m} {n} {k}: {time:.1f} us {rate:.0f} TFLOP/s, ratio {rate / 1550:.3f}", flush=True)
    return rate / 1550


def grouped(groups, rows, n, k):
    """Beside the single products of the groups, one after the other."""
    a, b = normal(rows, k), normal(groups, n, k)
    c = torch.empty(rows, n, device="cuda", dtype=torch.bfloat16)
    ends = [e * rows // groups for e in range(groups + 1)]

    def products():
        for e in range(groups):
            torch.matmul(a[ends[e]:ends[e + 1]], b[e].t(), out=c[ends[e]:ends[e + 1]])

    return one(f"grouped {groups} {rows} {n} {k}", products, 2 * rows * n * k)


def torch_sample(x, k):
    """As vLLM without FlashInfer: the K most likely, softmax, and the greatest quotient of a probability and an exponential number."""
    values, indices = torch.topk(x, k)
    p = torch.softmax(values / 0.8, dim=-1)
    return indices.gather(1, (p / torch.empty_like(p).exponential_()).argmax(dim=-1, keepdim=True))


def tokens(command, batch, theirs):
    """A choice of a token for each row of float32 logits, beside PyTorch's."""
    ask(command)
    x = torch.randn(batch, 128256, device="cuda") * 4
    return compare(command, command, graph([lambda: theirs(x)], 20), 20, 0)[0]


def route(count, experts, chosen):
    command = f"route {count} {experts} {chosen}"
    ask(command)
    x = normal(count, experts)

    def theirs():
        p, ids = torch.topk(torch.softmax(x.float(), dim=-1), chosen)
        return p / p.sum(dim=-1, keepdim=True), ids

    return compare(command, command, graph([theirs], 20), 20, 0)[0]


def attention(batch, heads, of_k, length, head, causal):
    candidates = ask(f"attention {batch} {heads} {of_k} {length} {length} {head} {int(causal)}")
    q = torch.randn(batch, heads, length, head, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(batch, of_k, length, head, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    operations = 4 * batch * heads * length * length * head
    count = 20 if operations / 5e14 < 1e-4 else 1
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        run = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=heads != of_k)
        theirs = graph([run], count)
    name = f"attention {batch} x {heads}/{of_k} x {length} x {head}{' causal' if causal else ''}"
    return compare(name, candidates, theirs, count, operations / (2 if causal else 1))


def packed(heads, of_k, head, causal, lengths):
    """Packed sequences beside PyTorch's attention of variable lengths (FlashAttention)."""
    from torch.nn.attention import varlen

    candidates = ask(f"packed {heads} {of_k} {head} {int(causal)} {' '.join(map(str, lengths))}")
    tokens, longest = sum(lengths), max(lengths)
    # Its heads of K are those of Q.
    q, k, v = (torch.randn(tokens, heads, head, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    offsets = torch.tensor([0] + lengths, device="cuda").cumsum(0).to(torch.int32)
    mask = {}
    if causal:
        parameters = inspect.signature(varlen.varlen_attn).parameters
        mask = {"is_causal": True} if "is_causal" in parameters else {"window_size": (-1, 0)}
    operations = 4 * heads * head * sum(length * length for length in lengths)
    count = 20 if operations / 5e14 < 1e-4 else 1
    theirs = graph([lambda: varlen.varlen_attn(q, k, v, offsets, offsets, longest, longest, **mask)], count)
    name = f"packed {len(lengths)} sequences of {min(lengths)} to {longest}, {heads}/{of_k} x {head}{' causal' if causal else ''}"
    return compare(name, candidates, theirs, count, operations / (2 if causal else 1))


def backward(batch, heads, of_k, length, head, causal):
    candidates = ask(f"backward {batch} {heads} {of_k} {length} {length} {head} {int(causal)}")
    q, d_o = (torch.randn(batch, heads, length, head, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    k, v = (torch.randn(batch, of_k, length, head, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    operations = 10 * batch * heads * length * length * head
    count = 20 if operations / 5e14 < 1e-4 else 1
    forward = torch.ops.aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, causal, False)
    o, lse, cum_q, cum_k, max_q, max_k, seed, offset = forward[:8]
    run = lambda: torch.ops.aten._scaled_dot_product_cudnn_attention_backward(
        d_o, q, k, v, o, lse, seed, offset, None, cum_q, cum_k, max_q, max_k, 0.0, causal)
    name = f"backward {batch} x {heads}/{of_k} x {length} x {head}{' causal' if causal else ''}"
    return compare(name, candidates, graph([run], count), count, operations / (2 if causal else 1))


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
if "fused" in sys.argv:
    geomean("fused", [fused(*shape) for shape in shapes if shape[0] < 16384])
if "gated" in sys.argv:
    geomean("gated", [gated(tokens, n, k) for tokens in (128, 512, 2048, 8192) for n, k in [(14336, 4096), (28672, 8192)]])
if "fp8" in sys.argv:
    geomean("fp8", [fp8(*shape) for shape in shapes])
if "scaled" in sys.argv:
    geomean("scaled", [scaled(*shape) for shape in [(4096, 4096, 4096), (4096, 7168, 2048), (4096, 4096, 7168), (4096, 24576, 1536), (8192, 8192, 8192)]])
if "grouped" in sys.argv:
    cases = [(8, rows, n, k) for rows in (1024, 8192) for n, k in [(14336, 4096), (4096, 14336)]]
    cases += [(64, rows, n, k) for rows in (512, 4096, 16384) for n, k in [(2048, 4096), (4096, 2048)]]
    geomean("grouped", [grouped(*case) for case in cases])
if "sampling" in sys.argv:
    for batch in (1, 16, 128):
        tokens(f"argmax {batch}", batch, lambda x: x.argmax(dim=-1))
        tokens(f"sample {batch} 50", batch, lambda x: torch_sample(x, 50))
if "experts" in sys.argv:
    for count, experts, chosen in [(1, 128, 8), (64, 128, 8), (4096, 128, 8), (4096, 256, 8)]:
        route(count, experts, chosen)
if "attention" in sys.argv:
    cases = [(max(1, 16384 // length), 16, 16 if head != 64 else 4, length, head, causal)
             for head in (64, 128, 256) for causal in (False, True) for length in (512, 1024, 2048, 4096, 8192, 16384)]
    for name, values in zip(("chosen", "best"), zip(*[attention(*case) for case in cases])):
        geomean(f"attention, {name}", values)
if "packed" in sys.argv:
    random = torch.Generator().manual_seed(1)
    for head in (64, 128):
        for causal in (False, True):
            for most in (512, 2048, 8192):
                lengths = torch.randint(1, most + 1, (32768 // most,), generator=random).tolist()
                packed(16, 16, head, causal, lengths)
if "backward" in sys.argv:
    cases = [(max(1, 16384 // length), 16, 16, length, head, causal)
             for head in (64, 128) for causal in (False, True) for length in (512, 1024, 2048, 4096, 8192, 16384)]
    geomean("backward", [backward(*case)[0] for case in cases])
