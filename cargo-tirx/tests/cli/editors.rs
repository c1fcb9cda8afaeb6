//! The language server under a real editor, and the stubs under a real type checker. Both say so and pass where the program
//! is not on the machine.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::Folder;

/// Whether a program can be run.
fn there_is(program: &str) -> bool {
    let version = Command::new(program).arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

const KERNEL: &str = r#"from tvm.script import tirx as T
from shapes import WIDTH


@T.prim_func
def k(A: T.Buffer((WIDTH,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([WIDTH])
    s = T.alloc_shard((WIDTH,), "float32")
    s[tx] = A[tx]
"#;

/// What Neovim does: opens, waits for diagnostics, mends by the code action, hovers, completes, goes to a definition in another
/// file, renames a name in both files; what it has seen goes to a file.
const SCRIPT: &str = r#"
local seen = {}
local function done()
  vim.fn.writefile({ vim.fn.json_encode(seen) }, 'seen.json')
  vim.cmd('qall!')
end
local ok, problem = pcall(function()
  vim.cmd('edit k.py')
  local buffer = vim.api.nvim_get_current_buf()
  local client = vim.lsp.start_client({ name = 'tirx', cmd = { vim.env.TIRX_SERVER, 'lsp', '--stdio' }, root_dir = vim.fn.getcwd() })
  vim.lsp.buf_attach_client(buffer, client)
  vim.wait(60000, function() return #vim.diagnostic.get(buffer) > 0 end, 20)
  seen.problem = vim.diagnostic.get(buffer)[1].message
  local function ask(method, more)
    local params = vim.tbl_extend('force', { textDocument = vim.lsp.util.make_text_document_params() }, more)
    local answers = vim.lsp.buf_request_sync(buffer, method, params, 60000)
    return answers[client].result
  end
  local line = { start = { line = 7, character = 0 }, ['end'] = { line = 7, character = 40 } }
  local actions = ask('textDocument/codeAction', { range = line, context = { diagnostics = {} } })
  seen.action = actions[1].title
  vim.lsp.util.apply_workspace_edit(actions[1].edit, 'utf-16')
  seen.mended = vim.api.nvim_buf_get_lines(buffer, 7, 8, true)[1]
  vim.wait(60000, function() return #vim.diagnostic.get(buffer) == 0 end, 20)
  seen.problems = #vim.diagnostic.get(buffer)
  seen.hover = ask('textDocument/hover', { position = { line = 8, character = 4 } }).contents.value
  local items = ask('textDocument/completion', { position = { line = 7, character = 10 } })
  seen.completes = #items > 100
  seen.definition = ask('textDocument/definition', { position = { line = 5, character = 19 } }).uri
  vim.lsp.util.apply_workspace_edit(ask('textDocument/rename', { position = { line = 5, character = 19 }, newName = 'W' }), 'utf-16')
  local shapes = vim.fn.bufnr('shapes.py')
  seen.renamed = vim.api.nvim_buf_get_lines(buffer, 1, 2, true)[1] .. '|' .. vim.api.nvim_buf_get_lines(buffer, 5, 6, true)[1]
    .. '|' .. vim.api.nvim_buf_get_lines(shapes, 0, 1, true)[1]
end)
if not ok then seen.failed = tostring(problem) end
done()
"#;

#[test]
fn neovim_edits_a_kernel() {
    if !there_is("nvim") {
        println!("skipped: there is no Neovim");
        return;
    }
    let folder = Folder::new();
    fs::write(folder.path("shapes.py"), "WIDTH = 64\n").unwrap();
    fs::write(folder.path("k.py"), KERNEL).unwrap();
    fs::write(folder.path("session.lua"), SCRIPT).unwrap();
    let output = Command::new("nvim")
        .args(["--headless", "-u", "NONE", "-n", "-c", "luafile session.lua"])
        .current_dir(folder.path(""))
        .env("TIRX_SERVER", env!("CARGO_BIN_EXE_cargo-tirx"))
        .output()
        .unwrap();
    let seen = fs::read_to_string(folder.path("seen.json"));
    let seen = seen.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let seen: Value = serde_json::from_str(&seen).unwrap();
    assert!(seen["failed"].is_null(), "{seen}");
    let text = |key: &str| seen[key].as_str().unwrap_or_default().to_string();
    assert!(text("problem").contains("alloc_shard"), "{seen}");
    assert!(text("action").contains("alloc_shared"), "{seen}");
    assert_eq!(text("mended"), "    s = T.alloc_shared((WIDTH,), \"float32\")");
    assert_eq!((&seen["problems"], &seen["completes"]), (&0.into(), &true.into()));
    assert!(
        text("hover").contains("(64,)") && text("hover").contains("shared"),
        "{seen}"
    );
    assert!(text("definition").ends_with("/shapes.py"), "{seen}");
    let renamed = "from shapes import W|def k(A: T.Buffer((W,), \"float32\")):|W = 64";
    assert_eq!(text("renamed"), renamed);
}

/// A code block below a heading of the page about editors.
fn block<'a>(page: &'a str, heading: &str) -> &'a str {
    let section = page.split(&format!("\n## {heading}")).nth(1).unwrap();
    section
        .split("```text\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap()
}

#[test]
fn what_editors_are_told_starts_the_server() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(sources.join("docs/book/src/editors.md")).unwrap();
    let words = |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap() };

    let helix: Value = toml::from_str(block(&page, "Helix")).unwrap();
    let server = &helix["language-server"]["tirx"];
    let (name, mut helix_command) = (
        &helix["language"][0]["language-servers"][0],
        words(&server["args"]),
    );
    helix_command.insert(0, server["command"].as_str().unwrap().to_string());
    assert_eq!(name, "tirx");

    let zed: Value = serde_json::from_str(block(&page, "Zed")).unwrap();
    let server = zed["languages"]["Python"]["language_servers"][0]
        .as_str()
        .unwrap();
    let binary = &zed["lsp"][server]["binary"];
    let mut zed_command = words(&binary["arguments"]);
    zed_command.insert(0, binary["path"].as_str().unwrap().to_string());

    let package = fs::read_to_string(sources.join("editors/vscode/package.json")).unwrap();
    let package: Value = serde_json::from_str(&package).unwrap();
    let code = words(&package["contributes"]["configuration"]["properties"]["tirx.command"]["default"]);

    let neovim = block(&page, "Neovim").split("cmd = {").nth(1).unwrap();
    let neovim = neovim.split('}').next().unwrap().replace('\'', "\"");
    let neovim: Vec<String> = serde_json::from_str(&format!("[{neovim}]")).unwrap();

    assert_eq!([&helix_command, &zed_command, &code], [&neovim; 3]);
    let tools = Path::new(env!("CARGO_BIN_EXE_cargo-tirx")).parent().unwrap();
    let path = format!(
        "{}:{}",
        tools.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut child = Command::new(&neovim[0])
        .args(&neovim[1..])
        .env("PATH", path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut editor = child.stdin.take().unwrap();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#;
    write!(editor, "Content-Length: {}\r\n\r\n{hello}", hello.len()).unwrap();
    let mut answer = [0; 64];
    child.stdout.as_mut().unwrap().read_exact(&mut answer).unwrap();
    assert!(answer.starts_with(b"Content-Length: "), "{answer:?}");
    // An editor that goes away.
    drop(editor);
    child.wait().unwrap();
}

/// Pyright: that of the machine, or one that npm fetches into the target directory, once.
fn pyright() -> Option<PathBuf> {
    const VERSION: &str = "1.1.414";
    if there_is("pyright") {
        return Some("pyright".into());
    }
    let program = std::env::current_exe().ok()?;
    let place = program.ancestors().nth(3)?.join("test-tools-npm");
    let installed = place.join("node_modules/.bin/pyright");
    let offline = std::env::var_os("TIRX_OFFLINE").is_some_and(|value| !value.is_empty() && value != "0");
    if !installed.is_file() && !offline && there_is("npm") {
        let package = format!("pyright@{VERSION}");
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]);
        let _ = npm.arg(&place).arg(package).output();
    }
    installed.is_file().then_some(installed)
}

fn copy_kernels(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            // Files of errors are wrong on purpose.
            if entry.file_name() != "errors" {
                copy_kernels(&path, &to.join(entry.file_name()));
            }
        } else if path.extension().is_some_and(|e| e == "py") {
            fs::copy(&path, to.join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn pyright_knows_the_language_by_the_stubs() {
    let Some(pyright) = pyright() else {
        println!("skipped: there is neither Pyright nor an npm that can fetch it");
        return;
    };
    let folder = Folder::new();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    copy_kernels(&sources.join("tests/kernels"), &folder.path("kernels/tests"));
    copy_kernels(&sources.join("kernels"), &folder.path("kernels/examples"));
    assert_eq!(folder.run(&["stubs"]).code, Some(0));
    let wrong = "from tvm.script import tirx as T\n\n\n@T.prim_func\ndef k(A: T.Buffer((1,), \"float32\")):\n    T.alloc_shard((1,), \"float32\")\n";
    fs::write(folder.path("kernels/wrong.py"), wrong).unwrap();
    // A name of 0.26 that is a mnemonic of 0.27 too takes the operands of both, and no others' keywords.
    let both = "from tvm.script import tirx as T\n\n\n@T.prim_func\ndef k():\n    T.ptx.bar.sync(1)\n    T.ptx.bar.sync(1, 64)\n    \
                T.ptx.bar.sync(1, 64, pred=True)\n    T.ptx.bar.sync(1, treads=64)\n";
    fs::write(folder.path("kernels/both.py"), both).unwrap();
    // The settings that docs/book/src/command-line.md gives for pyright.
    let settings = serde_json::json!({
        "include": ["kernels"],
        "stubPath": "typings",
        "pythonVersion": "3.12",
        "reportMissingModuleSource": "none",
        "reportInvalidTypeForm": "none",
        "reportUndefinedVariable": "none",
        "reportUnboundVariable": "none",
        "reportRedeclaration": "none",
    });
    fs::write(folder.path("pyrightconfig.json"), settings.to_string()).unwrap();
    let output = Command::new(pyright)
        .arg("--outputjson")
        .current_dir(folder.path(""))
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checked = report["summary"]["filesAnalyzed"].as_u64().unwrap();
    assert!(checked > 100, "{checked} files");
    let found: Vec<String> = report["generalDiagnostics"]
        .as_array()
        .unwrap()
        .iter()
        // `r: T.float32[4]` declares an array: to Python it is an index that is no type.
        .filter(|one| {
            !one["message"]
                .as_str()
                .unwrap()
                .starts_with("Expected class but received \"Literal[")
        })
        .map(|one| {
            format!(
                "{}: {}",
                one["file"].as_str().unwrap(),
                one["message"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(found.len(), 2, "{found:#?}");
    let told = |file: &str, word: &str| found.iter().any(|one| one.contains(file) && one.contains(word));
    assert!(told("wrong.py", "\"alloc_shard\""), "{found:?}");
    assert!(told("both.py", "\"__new__\""), "{found:?}");
}
