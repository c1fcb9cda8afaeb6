// The examples: from a first kernel to Hopper and Blackwell. Those of `kernels/` are the files that the example application uses.

import attention from "../../../kernels/hopper_attention.py";
import gemm from "../../../kernels/hopper_tiles.py";
import add from "../examples/add.py";
import blackwell from "../examples/blackwell.py";
import bulkCopy from "../examples/bulk_copy.py";
import endless from "../examples/endless.py";
import reverse from "../examples/reverse.py";
import sum from "../examples/sum.py";
import tiles from "../examples/tiles.py";
import transpose from "../examples/transpose.py";
import typo from "../examples/typo.py";

export interface Example {
  id: string;
  title: string;
  group: string;
  arch: string;
  text: string;
  /** The outcome of its run: it passes, its report holds a text, its text has an error, or it does not end. */
  outcome: "passes" | "endless" | { fault: string } | { error: string };
}

/** A file of `kernels/` with a run in front of its first kernel. */
function withRun(file: string, run: string): string {
  return file.replace("@T.jit\n", `${run.trim()}\n@T.jit\n`);
}

const gemmRun = `
# sim: gemm_tiles(M=256, N=256, K=256)
#   A: bfloat16[256x256] = 2 * (j == i * 5 % 256)
#   B: bfloat16[256x256] = (i + j) % 7
#   C: bfloat16[256x256] = 0 -> 2 * B[j][i * 5 % 256]
`;

const attentionRun = `
# Each query finds one key, so that each row of O is one row of V.
# sim: hopper_attention(H=1, S=128)
#   Q: bfloat16[128x128] = 16 * (i == j)
#   K: bfloat16[128x128] = 16 * (i == (j * 5 + 17) % 128)
#   V: bfloat16[128x128] = (i * 3 + j) % 11 + 1
#   O: bfloat16[128x128] = 0 -> V[(i * 5 + 17) % 128][j] +- 1e-2
`;

export const examples: Example[] = [
  { id: "add", group: "First steps", title: "Vector addition", arch: "sm_90a", text: add, outcome: "passes" },
  { id: "reverse", group: "First steps", title: "A missing barrier", arch: "sm_90a", text: reverse, outcome: { fault: "data race" } },
  { id: "typo", group: "First steps", title: "A mistake with a fix", arch: "sm_90a", text: typo, outcome: { error: "unknown name" } },
  { id: "sum", group: "First steps", title: "Sum of a block", arch: "sm_90a", text: sum, outcome: "passes" },
  { id: "transpose", group: "First steps", title: "Transposition with bank conflicts", arch: "sm_90a", text: transpose, outcome: "passes" },
  { id: "endless", group: "First steps", title: "An endless loop", arch: "sm_90a", text: endless, outcome: "endless" },
  { id: "bulk-copy", group: "Hopper", title: "Bulk copy and mbarrier", arch: "sm_90a", text: bulkCopy, outcome: "passes" },
  { id: "tiles", group: "Hopper", title: "Tile primitives", arch: "sm_90a", text: tiles, outcome: "passes" },
  { id: "gemm", group: "Hopper", title: "Matrix product (TMA, wgmma)", arch: "sm_90a", text: withRun(gemm, gemmRun), outcome: "passes" },
  { id: "attention", group: "Hopper", title: "Flash attention", arch: "sm_90a", text: withRun(attention, attentionRun), outcome: "passes" },
  { id: "blackwell", group: "Blackwell", title: "Matrix product (tcgen05)", arch: "sm_100a", text: blackwell, outcome: "passes" },
];
