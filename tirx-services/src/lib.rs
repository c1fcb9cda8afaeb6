//! Answers about kernel files as data. The command line prints them, the language server sends them to editors, and the
//! playground shows them in a browser.
//!
//! | module | question |
//! |---|---|
//! | [`kernel`] | what does a text in memory become, and what is wrong with it? |
//! | [`language`] | which names does the language have, with which signatures? |
//! | [`mod@reference`] | what does a name mean, which GPUs have it, and which line uses it? |
//! | [`texts`] | which IR and which CUDA text does it become? |
//! | [`tiles`] | how is each tile primitive lowered, and why so? |
//! | [`layout`] | where does a layout put each element? |
//! | [`simulation`] | what do the runs of its `# sim:` lines leave, and which faults do they have? |
//! | [`timeline`] | when did the warps of a block run, and for whom did they wait? A picture |
//! | [`cost`] | how long does a GPU take at least for a run, and which resource limits it? |
//! | [`counters`] | what was counted of a run, by line? |
//! | [`data`] | a message as data |
//! | [`editor`] | what does an editor show at a position: messages, hover, completion, signature, hints, repairs? |

#![forbid(unsafe_code)]

pub mod cost;
pub mod counters;
pub mod data;
pub mod editor;
pub mod kernel;
pub mod language;
pub mod layout;
pub mod reference;
pub mod simulation;
pub mod texts;
pub mod tiles;
pub mod timeline;

/// The types of the language server protocol, which editors' answers have.
pub use lsp_types as lsp;
