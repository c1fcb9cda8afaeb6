"""Writes a CUDA program that times kernels beside TVM's: `pair_times.py STAGES KERNEL... > pairs.cu`.

STAGES is the folder of an architecture that `cargo xtask oracle sass` leaves (`target/oracle-stages/sm_90a`); KERNEL is a name in it,
`tile_dtypes.int8_warp`. The program launches each text as one block a thousand times in a CUDA graph, and prints the median of twelve such
graphs for one launch. Arguments are zeroed memory; integers are 1. Kernels with tensor maps are left out.
"""

import pathlib
import re
import sys

ENTRY = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\((\d+)[^)]*\) )?(?:__maxnreg__\(\d+\) )?(\w+)\((.*?)\)\s*[{;]', re.S)
SHARED = re.compile(r"extern __shared__ (__align__\(\d+\)) ([\w ]+?) (\w+)\[\];")
MAIN = """
int main() {
  char* memory[16];
  for (char*& m : memory) { cudaMalloc(&m, 64 << 20); cudaMemset(m, 0, 64 << 20); }
  cudaStream_t stream;
  cudaEvent_t start, end;
  cudaStreamCreate(&stream); cudaEventCreate(&start); cudaEventCreate(&end);
  auto time = [&](const char* kernel, const char* whose, auto launch) {
    cudaGraph_t graph;
    cudaGraphExec_t launches;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    for (int i = 0; i < 1000; ++i) launch();
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&launches, graph, 0);
    std::vector<float> times(12);
    for (float& t : times) {
      cudaEventRecord(start, stream); cudaGraphLaunch(launches, stream); cudaEventRecord(end, stream);
      cudaEventSynchronize(end); cudaEventElapsedTime(&t, start, end);
    }
    std::sort(times.begin(), times.end());
    printf("%s, %s: %.3f us, %s\\n", kernel, whose, times[6], cudaGetErrorString(cudaGetLastError()));
  };
"""


def argument(parameter, index, namespace):
    if "*" not in parameter:
        return "1"
    dtype = parameter.rsplit(" ", 1)[0].replace("__restrict__", "").strip()
    # Types that the text itself defines.
    dtype = dtype.replace("tirx_vec<", f"{namespace}::tirx_vec<")
    return f"({dtype})memory[{index}]"


def main(stages, kernels):
    includes, bodies, launches = set(), [], []
    for number, kernel in enumerate(kernels):
        for whose, file in (("ours", "ours.cu"), ("TVM's", "kernel.cu")):
            text = (stages / kernel / file).read_text()
            entry = ENTRY.search(text)
            if entry is None or "CUtensorMap" in entry[3]:
                print(f"{kernel}: left out", file=sys.stderr)
                break
            namespace = f"pair_{number}_{file.split('.')[0]}"
            lines = text.splitlines()
            includes.update(line for line in lines if line.startswith("#include"))
            body = "\n".join(line for line in lines if not line.startswith("#include"))
            # `extern` names are one across namespaces.
            body = re.sub(rf"\b{entry[2]}\b", namespace + "_kernel", body)
            body = SHARED.sub(rf"extern __shared__ \1 char {namespace}_memory[]; \2* \3 = (\2*){namespace}_memory;", body)
            bodies.append(f"namespace {namespace} {{\n{body}\n}}\n")
            parameters = [p.strip() for p in re.split(r",(?![^<]*>)", entry[3]) if p.strip()]
            arguments = ", ".join(argument(p, i, namespace) for i, p in enumerate(parameters))
            name = f"{namespace}::{namespace}_kernel"
            launches.append(
                f"  cudaFuncSetAttribute({name}, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);\n"
                f'  time("{kernel}", "{whose}", [&] {{ {name}<<<1, {entry[1] or 128}, 65536, stream>>>({arguments}); }});\n'
            )
    own = ["#include <algorithm>", "#include <cstdint>", "#include <cstdio>", "#include <vector>"]
    print("\n".join(own + sorted(includes)))
    print("".join(bodies) + MAIN + "".join(launches) + "}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2:])
