//! Models of the shape of Llama and Qwen 3 with the kernels of `tirx-kernels`.
//!
//! | file | question |
//! |---|---|
//! | `config.rs` | Which numbers describe a model? |
//! | `weights.rs` | Where do its weights come from? |
//! | `model.rs` | How does a model turn tokens into logits? |
//! | `text.rs` | How does text become tokens, and tokens text? |
//! | `engine.rs` | How do sequences share a cache, and a step one graph? |

mod config;
mod engine;
mod model;
mod text;
mod weights;

pub use config::Config;
pub use engine::Engine;
pub use model::Model;
pub use text::Text;
pub use weights::{Files, Random, Source};

/// A result with any error.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
