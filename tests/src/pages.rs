//! The code blocks of documentation pages, as the tests run them.
//!
//! A block begins with a line such as ```` ```python,entry=scale,N=256 ````: the language, then words.

use std::path::{Path, PathBuf};

use tirx_core::codegen::cuda;
use tirx_core::script::{Entry, KernelFile};
use tirx_core::source::SourceMap;

use crate::files::Imported;
use crate::{Case, Defines, constant, stages};

/// A code block.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The page's file name.
    pub page: String,
    /// The line of its fence, from 1.
    pub line: usize,
    /// The language of the fence.
    pub language: String,
    /// The words after the language.
    pub words: Vec<String>,
    /// The text between the fences, with a line break at the end.
    pub text: String,
    /// The files that the text imports.
    pub imports: Imported,
}

impl Block {
    /// Whether a word stands after the language.
    pub fn has(&self, word: &str) -> bool {
        self.words.iter().any(|other| other == word)
    }

    /// The file that the first line names, as a comment of one word: `// src/main.rs`, `# kernels.toml`.
    pub fn file(&self) -> Option<&str> {
        let first = self.text.lines().next()?;
        let name = first.strip_prefix("// ").or_else(|| first.strip_prefix("# "))?;
        let end = name.rsplit_once('.')?.1;
        let known = ["rs", "py", "toml", "txt", "c", "cpp", "h", "yml"].contains(&end);
        (known && !name.contains(' ') && !name.contains("..")).then_some(name)
    }

    /// Where it is, for messages.
    pub fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }
}

/// The blocks of a page.
///
/// # Errors
/// A fence that is not closed, or has no language.
pub fn blocks(page: &str, text: &str) -> Result<Vec<Block>, String> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: Option<(Block, usize)> = None;
    for (at, line) in text.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let fence = line.trim_start().strip_prefix("```");
        open = match (open, fence) {
            (None, None) => None,
            (None, Some(info)) => {
                let mut words = info.split(',').map(|word| word.trim().to_string());
                let language = words.next().unwrap_or_default();
                if language.is_empty() {
                    return Err(format!("{page}:{}: a code block without a language", at + 1));
                }
                let block = Block {
                    page: page.into(),
                    line: at + 1,
                    language,
                    words: words.collect(),
                    text: String::new(),
                    imports: Imported::Filetests,
                };
                Some((block, indent))
            }
            (Some((block, _)), Some("")) => {
                blocks.push(block);
                None
            }
            (Some((mut block, within)), _) => {
                let blank = line.len() - line.trim_start().len();
                block.text += &line[within.min(blank)..];
                block.text.push('\n');
                Some((block, within))
            }
        };
    }
    match open {
        Some((block, _)) => Err(format!("{}: the code block does not end", block.place())),
        None => Ok(blocks),
    }
}

/// A page of the repository. A line `{{#include FILE}}` of a block stands for the file, as in mdBook; a Python block imports the files
/// beside the file.
///
/// # Errors
/// As [`blocks`], and for a page or an included file that cannot be read.
pub fn read(path: &Path) -> Result<Vec<Block>, String> {
    let load = |path: &Path| std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut found = blocks(&name, &load(path)?)?;
    for block in &mut found {
        let mut text = String::new();
        for line in block.text.split_inclusive('\n') {
            let included = line
                .trim()
                .strip_prefix("{{#include ")
                .and_then(|rest| rest.strip_suffix("}}"));
            match included {
                Some(file) => {
                    let file = path.with_file_name("").join(file.trim());
                    text += &load(&file)?;
                    if let (Some(folder), "python") = (file.parent(), block.language.as_str()) {
                        block.imports = Imported::Folder(folder.into());
                    }
                }
                None => text += line,
            }
        }
        block.text = text;
    }
    Ok(found)
}

/// The pages of the book, without the table of contents, in order of their paths.
pub fn book() -> Vec<PathBuf> {
    fn add(folder: &Path, found: &mut Vec<PathBuf>) {
        let entries = std::fs::read_dir(folder).expect("the book's folder is there");
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.is_dir() {
                add(&path, found);
            } else if path.extension().is_some_and(|end| end == "md") && !path.ends_with("SUMMARY.md") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    add(&crate::root().join("docs/book/src"), &mut found);
    found.sort();
    found
}

/// Reads a `python` block as a kernel file, [`kernel_block`] says how. The file is written to `folder`.
///
/// # Errors
/// A word that the block cannot have.
pub fn case(block: &Block, folder: &Path) -> Result<Case, String> {
    let path: PathBuf = folder.join(format!("line{}.py", block.line));
    // The text begins with a line of code: the comments below are no directives of a filetest.
    let imports = match block.text.contains("import ") {
        true => "\"\"\"A block of a page.\"\"\"\n",
        false => "from tvm.script import tirx as T\n",
    };
    // Directives stay in the first lines.
    let directive = |line: &&str| {
        ["# error:", "# -D", "# entry:"]
            .iter()
            .any(|word| line.starts_with(word))
    };
    let head: usize = block
        .text
        .lines()
        .take_while(directive)
        .map(|line| line.len() + 1)
        .sum();
    let text = format!("{}{imports}{}", &block.text[..head], &block.text[head..]);
    std::fs::write(&path, &text).map_err(|e| e.to_string())?;
    let mut case = Case::read(&path)?;
    case.imports = block.imports.clone();
    for word in &block.words {
        match word.split_once('=') {
            Some(("entry", name)) => case.entry = Some(name.into()),
            Some(("arch", name)) => case.arch = name.into(),
            Some((name, value)) => {
                case.defines.insert(name.into(), constant(value));
            }
            None => return Err(format!("unknown word `{word}`")),
        }
    }
    Ok(case)
}

/// Tests a `python` block as a kernel file: every kernel goes through all passes to CUDA text, `# sim:` lines are run,
/// and what `# error:` lines say is in the message. A block without an `import` begins with that of `T`.
///
/// A kernel with compile-time parameters takes the values of its `# sim: kernel(N=256)` lines.
///
/// The words `entry=NAME`, `NAME=VALUE` and `arch=sm_100a` choose what is built; `host` says that the block is no kernel file, and is
/// only parsed.
///
/// # Errors
/// What is not as the block says.
pub fn kernel_block(block: &Block, folder: &Path) -> Result<(), String> {
    let case = case(block, folder)?;
    match (check(&case), &case.errors[..]) {
        (Ok(0), _) => Err("it defines no kernel; a block of host code has the word `host`".into()),
        (Ok(_), []) => Ok(()),
        (Ok(_), _) => Err("no error, but one is expected".into()),
        (Err(message), []) => Err(message),
        (Err(message), errors) => match errors.iter().find(|error| !message.contains(*error)) {
            None => Ok(()),
            Some(missing) => Err(format!("the message does not say {missing:?}:\n{message}")),
        },
    }
}

/// The kernels of a block, each with whether it needs compile-time values that the block does not give.
fn kernels(case: &Case) -> Result<Vec<(String, bool)>, String> {
    let mut sources = SourceMap::new();
    let file = KernelFile::load(&mut sources, &case.name(), &case.text, &case.imports)
        .map_err(|error| error.render(&sources))?;
    let needs = |entry: &Entry| {
        let mut parameters = entry.constexprs.iter();
        parameters.any(|parameter| parameter.required && !case.defines.contains_key(&parameter.name))
    };
    Ok(match &case.entry {
        Some(name) => vec![(name.clone(), false)],
        None => {
            let entries = file.entries().iter();
            entries.map(|entry| (entry.name.clone(), needs(entry))).collect()
        }
    })
}

/// Builds, lowers, emits and runs; gives the number of kernels. A kernel is built with the values of each of its runs, or, without
/// a run, with those of the block. Beside kernels with runs, a kernel that needs further values is left out.
fn check(case: &Case) -> Result<usize, String> {
    let runs = case.runs()?;
    let kernels = kernels(case)?;
    if let Some(run) = runs
        .iter()
        .find(|run| kernels.iter().all(|(name, _)| *name != run.kernel))
    {
        return Err(format!("there is no kernel {}", run.kernel));
    }
    let mut count = 0;
    for (kernel, needs) in &kernels {
        let own: Vec<_> = runs.iter().filter(|run| run.kernel == *kernel).collect();
        if own.is_empty() && *needs && !runs.is_empty() {
            continue;
        }
        let mut values: Vec<Defines> = own.iter().map(|run| run.values.clone()).collect();
        values.dedup();
        if values.is_empty() {
            values.push(Defines::new());
        }
        for values in values {
            let mut defines = case.defines.clone();
            defines.extend(values.clone());
            let name = format!("{}.py", case.name());
            for (_, module) in crate::build_with(&case.imports, &name, &case.text, &[kernel], &defines)? {
                count += 1;
                let lowered = stages(&module, &case.arch, &mut |_, _| Ok(()))?;
                cuda::emit(&lowered).map_err(|e| format!("{kernel}: {e}"))?;
                for run in own.iter().filter(|run| run.values == values) {
                    let run = case.bound(run, &module)?;
                    for arch in run.archs(&case.arch) {
                        match arch == case.arch {
                            true => run.simulate(&lowered)?,
                            false => run.simulate(&stages(&module, arch, &mut |_, _| Ok(()))?)?,
                        }
                    }
                }
            }
        }
    }
    Ok(count)
}

/// Whether a text is valid Python.
///
/// # Errors
/// The syntax error.
pub fn python(text: &str) -> Result<(), String> {
    // A function that is never called is parsed and not evaluated.
    let body: String = text.lines().map(|line| format!("    {line}\n")).collect();
    let program = format!("from tvm.script import tirx as T\n\ndef block():\n    pass\n{body}");
    crate::build("block.py", &program, &[], &Defines::new()).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_language_words_and_text() {
        let text =
            "a\n```python,entry=f,N=2\nx = 1\n```\n1. b\n   ```rust\n   // src/main.rs\n     f()\n   ```\n";
        let found = blocks("page.md", text).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].line, found[0].text.as_str()), (2, "x = 1\n"));
        assert!(found[0].has("N=2") && !found[0].has("host"));
        assert_eq!(found[1].file(), Some("src/main.rs"));
        assert_eq!(found[1].text, "// src/main.rs\n  f()\n");
        assert!(blocks("page.md", "```\n```").is_err());
        assert!(blocks("page.md", "```rust\n").is_err());
    }

    #[test]
    fn a_kernel_block_must_do_what_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let check = |text: &str| {
            let text = format!("```python\n{text}```\n");
            kernel_block(&blocks("page.md", &text).unwrap()[0], folder.path())
        };
        let kernel = |value: &str| {
            format!(
                "# sim: k\n#   A: float32[32] = 0 -> i\n@T.prim_func\ndef k(A: T.Buffer((32,), \"float32\")):\n    \
                 T.device_entry(); tx = T.thread_id([32])\n    A[tx] = {value}\n"
            )
        };
        check(&kernel("tx")).unwrap();
        assert!(check(&kernel("tx + 1")).unwrap_err().contains("element 0"));
        assert!(check(&kernel("ty")).unwrap_err().contains("ty"));
        check(&format!("# error: ty\n{}", kernel("ty"))).unwrap();
        assert!(check(&format!("# error: ty\n{}", kernel("tx"))).is_err());
        assert!(check("x = 1\n").is_err());
        assert!(python("f(x\n").is_err() && python("f(x)\n").is_ok());
    }
}
