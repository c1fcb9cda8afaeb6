//! The typed interface of the WebAssembly module.
//!
//! Structures go through JSON, which engines parse faster than any other form; `types.ts` has their types.

use serde::Serialize;
use serde::de::DeserializeOwned;
use wasm_bindgen::prelude::{JsCast, JsValue, wasm_bindgen};

use crate::session::{self, lsp};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("types.ts");

#[wasm_bindgen]
extern "C" {
    /// A file and how it is compiled.
    #[wasm_bindgen(typescript_type = "Source")]
    pub type Source;
    /// How runs are made.
    #[wasm_bindgen(typescript_type = "Runs")]
    pub type Runs;
    /// The compiler's messages about a file.
    #[wasm_bindgen(typescript_type = "Checked")]
    pub type Checked;
    /// What is known of a name.
    #[wasm_bindgen(typescript_type = "Hover | null")]
    pub type Hover;
    /// Names that may stand at a position.
    #[wasm_bindgen(typescript_type = "CompletionItem[]")]
    pub type Completion;
    /// The signature of a call.
    #[wasm_bindgen(typescript_type = "SignatureHelp | null")]
    pub type Signature;
    /// CUDA text.
    #[wasm_bindgen(typescript_type = "Answer<Cuda>")]
    pub type Cuda;
    /// IR after each pass.
    #[wasm_bindgen(typescript_type = "Answer<Pass[]>")]
    pub type Passes;
    /// How tile primitives are lowered.
    #[wasm_bindgen(typescript_type = "Answer<Explained[]>")]
    pub type Explanation;
    /// Pictures of layouts.
    #[wasm_bindgen(typescript_type = "Answer<LayoutPicture[]>")]
    pub type Layouts;
    /// A picture of a layout.
    #[wasm_bindgen(typescript_type = "Answer<LayoutPicture>")]
    pub type Layout;
    /// The runs of a file.
    #[wasm_bindgen(typescript_type = "Report")]
    pub type Report;
}

#[wasm_bindgen(raw_module = "./signals.js")]
extern "C" {
    /// Notes the message of a panic; the module stops next.
    #[wasm_bindgen(js_name = panicked)]
    fn panicked(message: &str);
}

#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|info| panicked(&info.to_string())));
}

fn to_js<J: JsCast>(value: &impl Serialize) -> Result<J, JsValue> {
    let text = serde_json::to_string(value).map_err(|error| JsValue::from_str(&error.to_string()))?;
    Ok(js_sys::JSON::parse(&text)?.unchecked_into())
}

fn from_js<T: DeserializeOwned>(value: &JsValue) -> Result<T, JsValue> {
    let text: String = js_sys::JSON::stringify(value)?.into();
    serde_json::from_str(&text).map_err(|error| JsValue::from_str(&error.to_string()))
}

/// Questions about one kernel file.
#[wasm_bindgen]
#[derive(Default)]
pub struct Session(session::Session);

#[wasm_bindgen]
impl Session {
    /// A session without a file.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Session {
        Session::default()
    }

    /// Compiles a file as far as it goes: messages, hints, kernels.
    pub fn check(&mut self, source: &Source) -> Result<Checked, JsValue> {
        to_js(&self.0.check(&from_js(source)?))
    }

    /// What is known of the name at a position of the text that was checked last.
    pub fn hover(&self, line: u32, character: u32) -> Result<Hover, JsValue> {
        to_js(&self.0.hover(lsp::Position::new(line, character)))
    }

    /// The names that may stand at a position of a text.
    pub fn completion(&mut self, text: &str, line: u32, character: u32) -> Result<Completion, JsValue> {
        to_js(&self.0.completion(text, lsp::Position::new(line, character)))
    }

    /// The signature of the call around a position of a text.
    pub fn signature(&mut self, text: &str, line: u32, character: u32) -> Result<Signature, JsValue> {
        to_js(&self.0.signature(text, lsp::Position::new(line, character)))
    }

    /// The CUDA text of a kernel, with the kernel's line for each of its lines.
    pub fn cuda(&self, source: &Source) -> Result<Cuda, JsValue> {
        to_js(&self.0.cuda(&from_js(source)?))
    }

    /// The IR of a kernel as written and after each pass.
    pub fn passes(&self, source: &Source) -> Result<Passes, JsValue> {
        to_js(&self.0.passes(&from_js(source)?))
    }

    /// How the tile primitives of a kernel are lowered.
    pub fn explain(&self, source: &Source) -> Result<Explanation, JsValue> {
        to_js(&self.0.explain(&from_js(source)?))
    }

    /// Pictures of the layouts of a kernel's buffers.
    pub fn layouts(&self, source: &Source) -> Result<Layouts, JsValue> {
        to_js(&self.0.layouts(&from_js(source)?))
    }

    /// A picture of a layout in kernel syntax.
    pub fn layout(&self, text: &str, shape: &[i32], bytes: i32) -> Result<Layout, JsValue> {
        let shape: Vec<i64> = shape.iter().map(|extent| i64::from(*extent)).collect();
        to_js(&self.0.layout(text, &shape, bytes.into()))
    }

    /// Makes the runs that the file's `# sim:` lines describe.
    pub fn simulate(&self, source: &Source, runs: &Runs) -> Result<Report, JsValue> {
        to_js(&self.0.simulate(&from_js(source)?, &from_js(runs)?))
    }
}

/// The names of all passes, in order.
#[wasm_bindgen(js_name = passNames)]
pub fn pass_names() -> Vec<String> {
    session::passes().into_iter().map(str::to_string).collect()
}
