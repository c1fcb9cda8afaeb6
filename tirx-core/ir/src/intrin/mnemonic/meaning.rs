//! Which operation does an instruction perform?
//!
//! A line of the tables has one meaning: the longest word of this file with which its mnemonic begins, or the word that `means=`
//! gives. `cp.async.bulk.commit_group` means `cp.async.bulk`. What the simulator runs follows from an exhaustive match over
//! [`Meaning`].

/// Declares the meanings, each with its word in the tables.
macro_rules! meanings {
    ($($name:ident $word:literal),* $(,)?) => {
        /// The operation that an instruction performs: one variant for each word of the tables.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Meaning {
            $(#[doc = concat!("`", $word, "`")] $name,)*
        }

        impl Meaning {
            /// Every meaning.
            pub const ALL: &'static [Meaning] = &[$(Meaning::$name),*];

            /// Its word in the tables.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Meaning::$name => $word,)*
                }
            }
        }
    };
}

#[rustfmt::skip]
meanings! {
    // Arithmetic. `mixed.add`: float32 with halves; `mixed.x2`: the same of pairs.
    Add "add", Sub "sub", Mul "mul", Mad "mad", Fma "fma",
    MixedAdd "mixed.add", MixedSub "mixed.sub", MixedFma "mixed.fma", MixedPairs "mixed.x2",
    Mul24 "mul24", Mad24 "mad24", Clmad "clmad", Sad "sad", Div "div", Rem "rem", Abs "abs", Neg "neg", Min "min", Max "max",
    Dp4a "dp4a", Dp2a "dp2a", Rcp "rcp", Sqrt "sqrt", Rsqrt "rsqrt", Sin "sin", Cos "cos", Lg2 "lg2", Ex2 "ex2", Tanh "tanh",
    Copysign "copysign",

    // Comparisons and choices. `set.b32`: of the bytes or halves of a word.
    Set "set", SetWord "set.b32", Setp "setp", Selp "selp", Slct "slct", Testp "testp",

    // Bits, and moves of registers.
    And "and", Or "or", Xor "xor", Not "not", Cnot "cnot", Lop3 "lop3", Shf "shf", Shl "shl", Shr "shr", Prmt "prmt",
    Popc "popc", Clz "clz", Bfind "bfind", Fns "fns", Brev "brev", Bfe "bfe", Bfi "bfi", Szext "szext", Bmsk "bmsk",
    Mov "mov", MovWide "mov.b128",

    // Conversions of formats and addresses.
    Cvt "cvt", CvtPack "cvt.pack", Cvta "cvta", Isspacep "isspacep", Getctarank "getctarank", Mapa "mapa",

    // Memory. `async.release`: stores and reductions in global memory that no mbarrier awaits.
    Ld "ld", Ldu "ldu", St "st", StBulk "st.bulk", StAsync "st.async", RedAsync "red.async", AsyncRelease "async.release",
    Atom "atom", Red "red", Multimem "multimem", MultimemAsync "multimem.async", MultimemCp "multimem.cp",
    Prefetch "prefetch", Prefetchu "prefetchu", Applypriority "applypriority", Discard "discard", Createpolicy "createpolicy",

    // Threads that wait for each other, and fences.
    BarrierSync "barrier.sync", BarrierArrive "barrier.arrive", BarrierRed "barrier.red", BarrierCluster "barrier",
    WarpSync "bar.warp.sync", Griddepcontrol "griddepcontrol", Setmaxnreg "setmaxnreg",
    Fence "fence", FenceMbarrierInit "fence.mbarrier_init", FenceAlias "fence.proxy.alias", FenceAsync "fence.proxy.async",
    FenceTensorMap "fence.proxy.tensormap",

    // Lanes of a warp.
    Shfl "shfl", Vote "vote", Match "match", Activemask "activemask", Elect "elect", Redux "redux",

    // mbarriers. `mbarrier.multicast`: at several blocks.
    Mbarrier "mbarrier", MbarrierInit "mbarrier.init", MbarrierArrive "mbarrier.arrive", MbarrierExpectTx "mbarrier.expect_tx",
    MbarrierCompleteTx "mbarrier.complete_tx",
    MbarrierMulticast "mbarrier.multicast", MbarrierWait "mbarrier.wait", MbarrierPendingCount "mbarrier.pending_count",
    MbarrierCheckLayout "mbarrier.check_layout",

    // Asynchronous copies. `cp.async.bulk.report`: with a report of faults.
    CpAsync "cp.async", CpBulk "cp.async.bulk", CpBulkMulticast "cp.async.bulk.multicast", CpBulkReport "cp.async.bulk.report",
    CpBulkPrefetch "cp.async.bulk.prefetch", CpReduceBulk "cp.reduce.async.bulk", CpTensor "cp.async.bulk.tensor",
    CpTensorIm2col "cp.async.bulk.tensor.im2col", CpTensorOverride "cp.async.bulk.tensor.override",
    CpReduceTensor "cp.reduce.async.bulk.tensor",
    TensormapReplace "tensormap.replace", TensormapCopy "tensormap.cp_fenceproxy",
    TryCancel "clusterlaunchcontrol.try_cancel", QueryCancel "clusterlaunchcontrol.query_cancel", Fabric "fabric",

    // Matrices. `ldmatrix.b8`: of elements of a byte or less. `wgmma`, `tcgen05`: all but the products and the words below.
    Ldmatrix "ldmatrix", LdmatrixNarrow "ldmatrix.b8", Stmatrix "stmatrix", Movmatrix "movmatrix", Mma "mma", MmaSp "mma.sp",
    Wgmma "wgmma", WgmmaMma "wgmma.mma_async", WgmmaMmaBits "wgmma.mma_async.b1",
    Tcgen05 "tcgen05", Tcgen05Exclusive "tcgen05.alloc.exclusive", Tcgen05LdRed "tcgen05.ld.red",
    Tcgen05LdCompress "tcgen05.ld.spcompress", Tcgen05CommitMulticast "tcgen05.commit.multicast", Tcgen05Mma "tcgen05.mma",
    Tcgen05MmaInt16 "tcgen05.mma.ti16", Tcgen05MmaTable "tcgen05.mma.lut", Spcompress "spcompress", Spdecompress "spdecompress",
}

impl Meaning {
    /// The meaning of a mnemonic with these words: the longest word of the table with which it begins.
    pub(super) fn from_words(words: &[&str]) -> Option<Meaning> {
        (1..=words.len())
            .rev()
            .find_map(|count| Meaning::named(&words[..count].join(".")))
    }

    /// The meaning of a word.
    pub(super) fn named(word: &str) -> Option<Meaning> {
        Meaning::ALL
            .iter()
            .copied()
            .find(|meaning| meaning.word() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::Meaning;
    use crate::intrin::mnemonic::instructions;

    #[test]
    fn each_meaning_is_that_of_a_line() {
        for meaning in Meaning::ALL {
            let used = instructions().iter().any(|i| i.meaning == *meaning);
            assert!(used, "{}", meaning.word());
        }
    }
}
