//! What an editor shows of a kernel file, in the types of the language server protocol.
//!
//! | file | question |
//! |---|---|
//! | `analysis` | what does the compiler say of a file? |
//! | `text` | what stands at a position, and where is a name used? |
//! | `answers` | what does an editor get for each request? |

mod analysis;
mod answers;
pub mod text;

pub use analysis::{Analysis, Choice, EntryNeeds, Known, Shape, Wanted, analyze};
pub use answers::{Repair, completion, diagnostics, hints, hover, repairs, signature};

/// An open file.
#[derive(Debug, Default)]
pub struct Document {
    /// The file as messages call it.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The compiler's messages for the text. The names are those of the last text that could be built, so that names are
    /// completed and shown while a line is unfinished.
    pub analysis: Analysis,
}

impl Document {
    /// Takes the analysis of the present text.
    pub fn analyzed(&mut self, mut now: Analysis) {
        if now.names.is_empty() && !now.messages.is_empty() {
            now.names = std::mem::take(&mut self.analysis.names);
        }
        self.analysis = now;
    }
}
