//! The functions between and around matrix products and attention.

pub mod activation;
pub mod cast;
pub mod embedding;
pub mod experts;
pub mod loss;
pub mod norm;
pub mod paged;
pub mod quantize;
pub mod rope;
mod rows;
pub mod sampling;
pub mod softmax;

pub use rows::Element;
