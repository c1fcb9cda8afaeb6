"""The logits and the speed of `example-llm` beside those of `transformers`, on the first GPU.

    python3 compare.py EXECUTABLE            the logits of small models with random weights
    python3 compare.py EXECUTABLE --speed    steps and prompts of a model of the shape of Llama 3 with eight billion parameters
"""
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

import torch
import transformers

IDS = [1, 17, 4, 90, 33, 2, 150, 61, 7]


def run(executable, *arguments):
    done = subprocess.run([executable, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout, done.stderr


def logits(executable, name, model, steps=6):
    """Both continue the same tokens; the logits of the last one are compared with those in float32."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        file = pathlib.Path(folder, "logits")
        tokens, _ = run(executable, "--model", folder, "--ids", ",".join(map(str, IDS)), "--tokens", steps, "--logits", file)
        tokens = [int(word) for word in tokens.split()]
        ours = torch.tensor(struct.unpack(f"<{file.stat().st_size // 4}f", file.read_bytes()))
    # The last token has no successor: the step before it made the logits.
    ids = torch.tensor([IDS + tokens[:-1]], device="cuda")
    with torch.no_grad():
        theirs = model.cuda()(ids).logits[0].float().cpu()
        exact = model.float()(ids).logits[0].float().cpu()
    norm = exact[-1].norm()
    error, reference = (ours - exact[-1]).norm() / norm, (theirs[-1] - exact[-1]).norm() / norm
    # Tokens that both could choose differ by less than the rounding of bfloat16.
    chosen = exact[len(IDS) - 1:]
    lost = max(float((row.max() - row[token]) / row.std()) for row, token in zip(chosen, tokens))
    print(f"{name:<28} error {error:.4f}, transformers in bfloat16 {reference:.4f}; the chosen tokens lose {lost:.4f} at most")
    assert error < 2 * reference + 1e-3 and lost < 0.1, name


def speed(executable):
    shape = dict(vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
                 num_key_value_heads=8, max_position_embeddings=8192)
    for arguments in (["--prompt-length", 2048, "--tokens", 64], ["--prompt-length", 4096, "--tokens", 32, "--batch", 4]):
        print("example-llm --random 8b", *arguments)
        print(run(executable, "--random", "8b", *arguments)[1], end="", flush=True)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**shape))
    prompt = torch.arange(2048, device="cuda").remainder(97)[None] + 1

    def timed(call, count):
        call()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            call()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / count * 1e3

    with torch.no_grad():
        cache = transformers.StaticCache(config=model.config, max_cache_len=2304)
        model(prompt, past_key_values=cache, use_cache=True)
        last = prompt[:, -1:]
        print(f"transformers: step of one token {timed(lambda: model(last, past_key_values=cache, use_cache=True), 30):.2f} ms")
        long = torch.arange(4096, device="cuda").remainder(97)[None] + 1
        print(f"transformers: prompt of 4096 tokens {timed(lambda: model(long, use_cache=False, logits_to_keep=1), 5):.2f} ms")
    a = torch.empty(2 ** 30, dtype=torch.uint8, device="cuda")
    b = torch.empty_like(a)
    print(f"copy: {2 * a.numel() / timed(lambda: b.copy_(a), 20) / 1e6:.0f} GB/s")


def main():
    executable = sys.argv[1]
    if "--speed" in sys.argv:
        return speed(executable)
    torch.manual_seed(0)
    small = dict(vocab_size=211, hidden_size=256, intermediate_size=704, num_hidden_layers=3, num_attention_heads=8,
                 num_key_value_heads=2, head_dim=64, initializer_range=0.06)
    stretched = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                     original_max_position_embeddings=64, rope_theta=10000.0)
    models = {
        "Llama": transformers.LlamaForCausalLM(transformers.LlamaConfig(**small)),
        "Llama, stretched": transformers.LlamaForCausalLM(transformers.LlamaConfig(**small, rope_scaling=stretched)),
        "Mistral": transformers.MistralForCausalLM(transformers.MistralConfig(**small)),
        "Qwen 3, tied": transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**small, tie_word_embeddings=True)),
    }
    for name, model in models.items():
        logits(executable, name, model.to(torch.bfloat16))


main()
