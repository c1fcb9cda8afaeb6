//! Kernels of given sizes, each large in one respect, for tests that compilation cost grows linearly.

/// A way in which a kernel is large.
pub struct Shape {
    /// The repeated element.
    pub name: &'static str,
    /// A size, and a larger one, that show how the cost grows. The larger one is near the language's limit where there
    /// is one.
    pub sizes: [usize; 2],
    /// The kernel `shape` of a size.
    pub text: fn(usize) -> String,
}

/// Every shape.
pub const SHAPES: &[Shape] = &[
    Shape {
        name: "stores in a row",
        sizes: [200, 3_200],
        text: |n| {
            body(n, |i| {
                format!("    B[bx * 256 + tx + {i}] = A[bx * 256 + tx + {i}] * T.float32(2.0)\n")
            })
        },
    },
    Shape {
        name: "bindings, each of the one before",
        sizes: [200, 3_200],
        text: |n| {
            let first = "    x0: T.let = tx + 1\n".to_string();
            let last = format!("    B[x{}] = A[tx]\n", n - 1);
            first_and_rest(first, n, |i| {
                format!("    x{i}: T.let = (x{} * 3 + {i}) % 1024\n", i - 1)
            }) + &last
        },
    },
    Shape {
        name: "mutable scalars",
        sizes: [100, 1_600],
        text: |n| {
            body(n, |i| {
                format!(
                    "    s{i}: T.f32 = A[tx + {i}]\n    s{i} = s{i} + T.float32(1.0)\n    B[tx + {i}] = s{i}\n"
                )
            })
        },
    },
    Shape {
        name: "local buffers",
        sizes: [100, 1_600],
        text: |n| {
            body(n, |i| {
                format!(
                    "    l{i} = T.alloc_local((4,), \"float32\")\n    l{i}[0] = A[tx + {i}]\n    \
                     B[tx + {i}] = l{i}[0]\n"
                )
            })
        },
    },
    Shape {
        name: "conditions in a row",
        sizes: [100, 1_600],
        text: |n| {
            body(n, |i| {
                format!(
                    "    if tx < {}:\n        B[tx + {i}] = A[tx]\n    else:\n        B[tx + {i}] = A[tx + {i}]\n",
                    i % 256
                )
            })
        },
    },
    Shape {
        name: "loops in a row",
        sizes: [100, 1_600],
        text: |n| {
            body(n, |i| {
                format!(
                    "    for i in range({}):\n        B[tx * 8 + i] = A[tx * 8 + i + {i}]\n",
                    2 + i % 7
                )
            })
        },
    },
    Shape {
        name: "turns of an unrolled loop",
        sizes: [200, 3_200],
        text: |n| {
            let loops = format!(
                "    for i in T.unroll({n}):\n        \
                 B[(bx * 256 + tx + i * 7) % 65536] = A[(tx + i) % 65536] + T.float32(1.0)\n"
            );
            HEAD.to_string() + &loops
        },
    },
    Shape {
        name: "terms of a floating sum",
        sizes: [60, 500],
        text: |n| {
            let terms: Vec<String> = (0..n).map(|i| format!("A[tx + {i}]")).collect();
            format!("{HEAD}    B[tx] = {}\n", terms.join(" + "))
        },
    },
    Shape {
        name: "terms of an integer sum",
        sizes: [60, 400],
        text: |n| {
            let terms: Vec<String> = (0..n)
                .map(|i| format!("(tx + {i}) * {} % 64", i % 7 + 1))
                .collect();
            format!("{HEAD}    B[({}) % 65536] = A[tx]\n", terms.join(" + "))
        },
    },
    Shape {
        name: "brackets within brackets",
        sizes: [8, 45],
        text: |n| {
            let opening = "T.max(T.float32(0.5) * (".repeat(n);
            let closing: String = (0..n)
                .map(|i| format!(" + A[tx + {i}]), T.float32({i}.0))"))
                .collect();
            format!("{HEAD}    B[tx] = {opening}A[tx]{closing}\n")
        },
    },
    Shape {
        name: "shared arrays",
        sizes: [50, 800],
        text: |n| {
            body(n, |i| {
                format!(
                    "    s{i} = T.alloc_buffer((1,), \"float32\", scope=\"shared\")\n    if tx == 0:\n        \
                     s{i}[0] = A[{i}]\n    T.cuda.cta_sync()\n    B[tx + {i}] = s{i}[0]\n"
                )
            })
        },
    },
    Shape {
        name: "buffers as parameters",
        sizes: [20, 320],
        text: |n| {
            let params: Vec<String> = (0..n)
                .map(|i| format!("P{i}: T.Buffer((256,), \"float32\")"))
                .collect();
            let stores: String = (0..n)
                .map(|i| format!("    P{i}[tx] = P{i}[tx] + T.float32({i}.0)\n"))
                .collect();
            format!(
                "from tvm.script import tirx as T\n\n\n@T.prim_func\ndef shape({}):\n    T.device_entry()\n    \
                 bx = T.cta_id([1])\n    tx = T.thread_id([256])\n{stores}",
                params.join(", ")
            )
        },
    },
    Shape {
        name: "inline functions",
        sizes: [50, 800],
        text: |n| {
            let (import, kernel) = HEAD.split_once("\n\n\n").unwrap_or((HEAD, ""));
            let functions: String = (0..n)
                .map(|i| {
                    format!(
                        "@T.inline\ndef f{i}(A, B, at):\n    B[at + {i}] = A[at] * T.float32({i}.0)\n\n\n"
                    )
                })
                .collect();
            let calls: String = (0..n).map(|i| format!("    f{i}(A, B, tx)\n")).collect();
            format!("{import}\n\n\n{functions}{kernel}{calls}")
        },
    },
    Shape {
        name: "loops within loops",
        sizes: [12, 48],
        text: |n| {
            let mut text = HEAD.to_string();
            for i in 0..n {
                let indent = "    ".repeat(i + 1);
                text += &format!("{indent}for i{i} in range({}):\n", 2 + i % 3);
                text += &format!("{indent}    B[tx + i{i}] = A[tx]\n");
            }
            text
        },
    },
    Shape {
        name: "conditions within conditions",
        sizes: [12, 48],
        text: |n| {
            let mut text = HEAD.to_string();
            for i in 0..n {
                let indent = "    ".repeat(i + 1);
                text += &format!("{indent}if A[tx + {i}] < T.float32({i}.0):\n");
                text += &format!("{indent}    B[tx + {i}] = A[tx]\n");
            }
            text
        },
    },
];

const HEAD: &str = "from tvm.script import tirx as T\n\n\n@T.prim_func\n\
    def shape(A: T.Buffer((65536,), \"float32\"), B: T.Buffer((65536,), \"float32\")):\n\
    \x20   T.device_entry()\n    bx = T.cta_id([256])\n    tx = T.thread_id([256])\n";

fn body(n: usize, lines: impl Fn(usize) -> String) -> String {
    HEAD.to_string() + &(0..n).map(lines).collect::<String>()
}

fn first_and_rest(first: String, n: usize, lines: impl Fn(usize) -> String) -> String {
    HEAD.to_string() + &first + &(1..n).map(lines).collect::<String>()
}
