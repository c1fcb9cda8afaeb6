//! How are barriers, fences, votes, registers and the timers of a profile written?

use super::instructions::Instruction;
use crate::diagnostic::{Result, error};
use crate::intrin::Op;
use crate::ir::Expr;
use crate::source::Span;

/// The function of an instruction of this file, which takes the call's first arguments.
pub(super) fn instruction(op: Op, args: &[Expr], span: Span) -> Result<Option<Instruction>> {
    let text = |at: usize| args.get(at).and_then(Expr::as_str).unwrap_or_default();
    let set = |at: usize| args.get(at).is_some_and(|e| !e.is_int(0));
    let one_of = |word: &str, known: &[&str], what: &str| match known.contains(&word) {
        true => Ok(()),
        false => error(span, format!("there is no {what}.{word}")),
    };
    Ok(Some(match op {
        Op::PtxBarSync | Op::PtxBarArrive | Op::PtxBarrierSync => {
            let what = op.info().script.trim_start_matches("ptx.");
            Instruction {
                name: format!("tirx_ptx_{}", what.replace('.', "_")),
                result: "void",
                params: "int barrier, int threads".into(),
                body: format!(
                    "  asm volatile(\"{what} %0, %1;\" : : \"r\"(barrier), \"r\"(threads) : \"memory\");\n"
                ),
                operands: 2,
            }
        }
        Op::PtxFence => {
            one_of(text(0), &["sc", "acq_rel"], "fence")?;
            one_of(text(1), &["cta", "cluster", "gpu", "sys"], "fence")?;
            statement(&["fence", text(0), text(1)])
        }
        Op::PtxFenceMbarrierInit => statement(&["fence.mbarrier_init.release.cluster"]),
        Op::PtxFenceProxyAsync => {
            let spaces = &["", "global", "shared::cta", "shared::cluster"];
            one_of(text(0), spaces, "fence.proxy.async")?;
            statement(&["fence.proxy.async", text(0)])
        }
        Op::PtxBarrierClusterArrive => {
            one_of(text(0), &["", "release", "relaxed"], "barrier.cluster.arrive")?;
            statement(&[
                "barrier.cluster.arrive",
                text(0),
                if set(1) { "aligned" } else { "" },
            ])
        }
        Op::PtxBarrierClusterWait => statement(&[
            "barrier.cluster.wait",
            if set(0) { "acquire" } else { "" },
            if set(1) { "aligned" } else { "" },
        ]),
        Op::PtxSetmaxnreg => {
            let Some(count) = args.get(1).and_then(Expr::as_int) else {
                return error(span, "`T.ptx.setmaxnreg` takes a constant number of registers");
            };
            let way = if set(0) { "inc" } else { "dec" };
            Instruction {
                name: format!("tirx_ptx_setmaxnreg_{way}_{count}"),
                result: "void",
                params: String::new(),
                body: format!("  asm volatile(\"setmaxnreg.{way}.sync.aligned.u32 {count};\");\n"),
                operands: 0,
            }
        }
        Op::PtxElectSync => Instruction {
            name: "tirx_ptx_elect_sync".into(),
            result: "unsigned int",
            params: String::new(),
            body: "  unsigned int elected;\n  asm volatile(\"{\\n\\t.reg .pred p;\\n\\telect.sync _|p, \
                   0xffffffff;\\n\\tselp.u32 %0, 1, 0, p;\\n\\t}\" : \"=r\"(elected));\n  return elected;\n"
                .into(),
            operands: 0,
        },
        Op::CudaTimerInit => Instruction {
            name: "tirx_timer_init".into(),
            result: "void",
            params: "uint64_t* buffer, uint64_t* tag, unsigned int* offset, int groups, int group".into(),
            body: "  const unsigned int blocks = gridDim.x * gridDim.y * gridDim.z;\n  \
                   const unsigned int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;\n  \
                   const unsigned int row = block * (unsigned int)groups + (unsigned int)group;\n  \
                   if (block == 0 && threadIdx.x == 0) {\n    \
                   buffer[0] = (uint64_t)(unsigned int)groups << 32 | blocks;\n  }\n  \
                   offset[0] = 1 + row;\n  tag[0] = (uint64_t)row << 12;\n"
                .into(),
            operands: 5,
        },
        Op::CudaTimerStart => timer("start", "(unsigned int)event << 2"),
        Op::CudaTimerEnd => timer("end", "(unsigned int)event << 2 | 1u"),
        Op::CudaTimerFinalize => timer("finalize", "3u"),
        _ => return Ok(None),
    }))
}

/// An instruction of these words, without operands.
fn statement(words: &[&str]) -> Instruction {
    let words: Vec<&str> = words.iter().copied().filter(|w| !w.is_empty()).collect();
    let text = words.join(".");
    Instruction {
        name: format!("tirx_ptx_{}", text.replace("::", "_").replace('.', "_")),
        result: "void",
        params: String::new(),
        body: format!("  asm volatile(\"{text};\" : : : \"memory\");\n"),
        operands: 0,
    }
}

/// Writes the time and what happened, and moves on to the thread's next place.
fn timer(name: &str, what: &str) -> Instruction {
    let record = format!(
        "  if (leads) {{\n    unsigned int now;\n    asm volatile(\"mov.u32 %0, %%globaltimer_lo;\" : \"=r\"(now));\n    \
         buffer[offset[0]] = (uint64_t)now << 32 | (tag[0] | ({what}));\n    offset[0] += stride;\n  }}\n"
    );
    let fence = "  __threadfence_block();\n";
    let (event, operands) = if name == "finalize" {
        ("", 5)
    } else {
        ("int event, ", 6)
    };
    Instruction {
        name: format!("tirx_timer_{name}"),
        result: "void",
        params: format!(
            "{event}uint64_t* buffer, uint64_t* tag, unsigned int* offset, int stride, bool leads"
        ),
        body: match name {
            "start" => record + fence,
            _ => fence.to_string() + &record,
        },
        operands,
    }
}
