//! Models of the shape of Llama and Qwen 3 with the kernels of `tirx-kernels`.
//!
//! | file | question |
//! |---|---|
//! | `config.rs` | Which numbers describe a model? |
//! | `weights.rs` | Where do its weights come from? |
//! | `gguf.rs` | How does one file hold a whole model? |
//! | `matrix.rs` | How does a matrix multiply whose parts have different forms? |
//! | `model.rs` | How does a model turn tokens into logits? |
//! | `text.rs` | How does text become tokens, and tokens text? |
//! | `engine.rs` | How do sequences share a cache, and a step one graph? |

mod config;
mod engine;
mod gguf;
mod matrix;
mod model;
mod text;
mod weights;

pub use config::Config;
pub use engine::Engine;
pub use gguf::Gguf;
pub use model::Model;
pub use text::Text;
pub use weights::{Elements, Files, Random, Source};

/// A result with any error.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
