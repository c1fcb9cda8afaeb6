//! `cargo tirx lsp` and `stubs`: a session as an editor has it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::Folder;

const FILE: &str = r#"from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from shapes import WIDTH, twice


@T.jit
def move(A: T.Buffer((N, WIDTH), "float16"), B: T.Buffer((N, WIDTH), "float16"), *, N: T.constexpr):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([128])
    s = T.alloc_shared((N, WIDTH), "float16")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    for i in range(twice(N) // 2):
        if tx < WIDTH:
            B[i, tx] = s[i, tx]
"#;

const SHAPES: &str = "WIDTH = 64\n\n\ndef twice(x):\n    return 2 * x\n";

struct Session {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: i64,
    /// What the server has said beside answers.
    notified: Vec<Value>,
}

impl Session {
    fn start() -> Session {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cargo-tirx"))
            .args(["lsp", "--stdio"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut session = Session {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            next: 0,
            notified: Vec::new(),
        };
        let answer = session.ask(
            "initialize",
            json!({"processId": null, "rootUri": null, "capabilities": {}}),
        );
        assert_eq!(answer["capabilities"]["hoverProvider"], true);
        session.tell("initialized", json!({}));
        session
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
        self.input.flush().unwrap();
    }

    fn read(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(
                self.output.read_line(&mut line).unwrap() > 0,
                "the server has ended"
            );
            match line.trim().split_once(": ") {
                Some(("Content-Length", number)) => length = number.parse().unwrap(),
                _ if line.trim().is_empty() => break,
                _ => {}
            }
        }
        let mut bytes = vec![0; length];
        self.output.read_exact(&mut bytes).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.read();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{message}");
                return message["result"].clone();
            }
            self.notified.push(message);
        }
    }

    /// The messages of the latest diagnostics of a file.
    fn diagnostics(&mut self, uri: &str) -> Vec<Value> {
        // An answer comes behind the diagnostics of the changes before it.
        self.ask(
            "textDocument/hover",
            json!({"textDocument": {"uri": uri}, "position": {"line": 0, "character": 0}}),
        );
        let of_file = |message: &&Value| message["params"]["uri"] == uri;
        let last = self.notified.iter().rev().find(of_file);
        last.map_or(Vec::new(), |message| {
            message["params"]["diagnostics"].as_array().unwrap().clone()
        })
    }
}

/// The position of a part of a text, `behind` characters from its beginning.
fn at(text: &str, part: &str, behind: usize) -> Value {
    let byte = text.find(part).unwrap_or_else(|| panic!("{part}")) + behind;
    let line = text[..byte].matches('\n').count();
    let start = text[..byte].rfind('\n').map_or(0, |at| at + 1);
    json!({"line": line, "character": byte - start})
}

#[test]
fn a_session() {
    let folder = Folder::new();
    fs::write(folder.path("shapes.py"), SHAPES).unwrap();
    fs::write(folder.path("move.py"), FILE).unwrap();
    let manifest = "[[kernel]]\nname = \"mover\"\nentry = \"move\"\nsource = \"move.py\"\ntargets = [\"sm_90a\"]\nspecialize = [{ N = 32 }]\n";
    fs::write(folder.path("kernels.toml"), manifest).unwrap();
    let uri = format!(
        "file://{}",
        folder.path("move.py").canonicalize().unwrap().display()
    );
    let document = json!({"uri": uri});
    let mut session = Session::start();
    let open = |text: &str| json!({"textDocument": {"uri": uri, "languageId": "python", "version": 1, "text": text}});
    session.tell("textDocument/didOpen", open(FILE));
    assert_eq!(session.diagnostics(&uri), Vec::<Value>::new());

    // A name of the kernel: with the manifest's value and the import in its shape.
    let params = json!({"textDocument": document, "position": at(FILE, "s[i, tx]", 0)});
    let hover = session.ask("textDocument/hover", params)["contents"]["value"].to_string();
    assert!(
        hover.contains("(32, 64)") && hover.contains("float16") && hover.contains("shared"),
        "{hover}"
    );
    // An operation: its row's documentation.
    let params = json!({"textDocument": document, "position": at(FILE, "cta_sync", 2)});
    let hover = session.ask("textDocument/hover", params)["contents"]["value"].to_string();
    assert!(
        hover.contains("T.cuda.cta_sync") && hover.contains("GPUs: "),
        "{hover}"
    );
    // The variant of the tile primitive.
    let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}});
    let hints = session.ask(
        "textDocument/inlayHint",
        json!({"textDocument": document, "range": range}),
    );
    assert_eq!(hints[0]["position"]["line"], 9, "{hints}");
    assert!(
        hints[0]["label"].as_str().unwrap().contains(" threads x "),
        "{hints}"
    );
    // The shape of `s`, which its line names by values from elsewhere.
    let shapes: Vec<&Value> = hints.as_array().unwrap().iter().skip(1).collect();
    assert_eq!(shapes.len(), 1, "{hints}");
    assert_eq!(
        (&shapes[0]["position"]["line"], &shapes[0]["label"]),
        (&8.into(), &"s: float16[32, 64]".into())
    );

    // Definitions: in the file, and in the imported one.
    let params = json!({"textDocument": document, "position": at(FILE, "s[i, tx]", 0)});
    assert_eq!(
        session.ask("textDocument/definition", params)["range"]["start"]["line"],
        8
    );
    let params = json!({"textDocument": document, "position": at(FILE, "twice(N)", 1)});
    let place = session.ask("textDocument/definition", params);
    assert!(place["uri"].as_str().unwrap().ends_with("/shapes.py"), "{place}");
    assert_eq!(place["range"]["start"], json!({"line": 3, "character": 4}));

    // A line is typed: its completions, and the parameters of the call.
    let typed = FILE.replace(
        "    T.cuda.cta_sync()\n",
        "    T.cuda.cta_sync()\n    T.ptx.mbarrier.\n",
    );
    let change =
        |text: &str| json!({"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": text}]});
    session.tell("textDocument/didChange", change(&typed));
    let params = json!({"textDocument": document, "position": at(&typed, "mbarrier.\n", 9)});
    let items = session.ask("textDocument/completion", params);
    let item = items
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["label"] == "init");
    assert!(
        item.unwrap()["documentation"]["value"]
            .as_str()
            .unwrap()
            .contains("T.ptx.mbarrier.init("),
        "{item:?}"
    );
    let broken = session.diagnostics(&uri);
    assert_eq!(
        (broken.len(), &broken[0]["severity"]),
        (1, &json!(1)),
        "{broken:?}"
    );
    let called = typed.replace("mbarrier.\n", "mbarrier.init(s, \n");
    session.tell("textDocument/didChange", change(&called));
    let params = json!({"textDocument": document, "position": at(&called, "init(s, ", 8)});
    let help = session.ask("textDocument/signatureHelp", params);
    assert_eq!(
        (
            &help["signatures"][0]["parameters"][1]["label"],
            &help["activeParameter"]
        ),
        (&json!("thread_count"), &json!(1)),
        "{help}"
    );

    // A name with a slip: the error has the compiler's help, and an action that follows it.
    let slip = FILE.replace("alloc_shared", "alloc_shard");
    session.tell("textDocument/didChange", change(&slip));
    let found = session.diagnostics(&uri);
    assert!(
        found[0]["message"]
            .as_str()
            .unwrap()
            .contains("did you mean \"alloc_shared\"?"),
        "{found:?}"
    );
    let actions = session.ask(
        "textDocument/codeAction",
        json!({"textDocument": document, "range": found[0]["range"], "context": {"diagnostics": []}}),
    );
    let edit = &actions[0]["edit"]["changes"][&uri][0];
    let start = edit["range"]["start"]["character"].as_u64().unwrap() as usize;
    let end = edit["range"]["end"]["character"].as_u64().unwrap() as usize;
    let mut lines: Vec<String> = slip.lines().map(String::from).collect();
    lines[edit["range"]["start"]["line"].as_u64().unwrap() as usize]
        .replace_range(start..end, edit["newText"].as_str().unwrap());
    assert_eq!(format!("{}\n", lines.join("\n")), FILE, "{actions}");

    // An import is renamed, and the file still compiles.
    session.tell("textDocument/didChange", change(FILE));
    let params = json!({"textDocument": document, "position": at(FILE, "T.jit", 0), "newName": "lang"});
    let renamed = session.ask("textDocument/rename", params);
    let mut edits = renamed["changes"][&uri].as_array().unwrap().clone();
    assert_eq!(edits.len(), FILE.matches("T.").count() + 1);
    edits.reverse();
    let mut lines: Vec<String> = FILE.lines().map(String::from).collect();
    for edit in &edits {
        let start = edit["range"]["start"]["character"].as_u64().unwrap() as usize;
        let end = edit["range"]["end"]["character"].as_u64().unwrap() as usize;
        lines[edit["range"]["start"]["line"].as_u64().unwrap() as usize]
            .replace_range(start..end, edit["newText"].as_str().unwrap());
    }
    let text = format!("{}\n", lines.join("\n"));
    assert!(
        text.starts_with("from tvm.script import tirx as lang\n") && text.contains("@lang.jit"),
        "{text}"
    );
    session.tell("textDocument/didChange", change(&text));
    assert_eq!(session.diagnostics(&uri), Vec::<Value>::new());
    let params = json!({"textDocument": document, "position": at(&text, "cta_sync", 2)});
    assert!(
        session
            .ask("textDocument/hover", params)
            .to_string()
            .contains("T.cuda.cta_sync")
    );

    // An error in the open file that is imported is shown where it is imported.
    let other = uri.replace("move.py", "shapes.py");
    session.tell(
        "textDocument/didOpen",
        json!({"textDocument": {"uri": other, "languageId": "python", "version": 1, "text": SHAPES.replace("twice", "thrice")}}),
    );
    let found = session.diagnostics(&uri);
    assert!(
        found[0]["message"].as_str().unwrap().contains("twice"),
        "{found:?}"
    );

    assert!(session.ask("shutdown", Value::Null).is_null());
    session.tell("exit", Value::Null);
    assert!(session.child.wait().unwrap().success());
}

/// A text with the edits of an answer.
fn edited(text: &str, edits: &Value) -> String {
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    for edit in edits.as_array().unwrap().iter().rev() {
        let number = |end: &str, part: &str| edit["range"][end][part].as_u64().unwrap() as usize;
        let line = &mut lines[number("start", "line")];
        line.replace_range(
            number("start", "character")..number("end", "character"),
            edit["newText"].as_str().unwrap(),
        );
    }
    format!("{}\n", lines.join("\n"))
}

#[test]
fn a_name_is_renamed_in_all_files_that_import_it() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("kernels/lib")).unwrap();
    fs::create_dir_all(folder.path("kernels/other")).unwrap();
    fs::write(folder.path("kernels.toml"), "").unwrap();
    let library = "TILE = 64\n\n\ndef twice(TILE_2):\n    return 2 * TILE_2 + TILE\n";
    // What each file becomes where `TILE` of `lib/shapes.py` is renamed.
    let files = [
        ("lib/__init__.py", "", ""),
        (
            "lib/shapes.py",
            library,
            "WIDTH = 64\n\n\ndef twice(TILE_2):\n    return 2 * TILE_2 + WIDTH\n",
        ),
        (
            "named.py",
            "from lib.shapes import (  # shapes\n    twice,\n    TILE,\n)\nx = f(TILE=TILE)  # TILE\n",
            "from lib.shapes import (  # shapes\n    twice,\n    WIDTH,\n)\nx = f(TILE=WIDTH)  # TILE\n",
        ),
        (
            "renamed.py",
            "from lib.shapes import TILE as W\nTILE = W\n",
            "from lib.shapes import WIDTH as W\nTILE = W\n",
        ),
        (
            "modules.py",
            "import lib.shapes\nfrom lib import shapes as s\nx = lib.shapes.TILE + s.TILE + s.TILES + T.TILE\n",
            "import lib.shapes\nfrom lib import shapes as s\nx = lib.shapes.WIDTH + s.WIDTH + s.TILES + T.TILE\n",
        ),
        (
            "lib/beside.py",
            "from .shapes import TILE\nprint(TILE)\n",
            "from .shapes import WIDTH\nprint(WIDTH)\n",
        ),
        // Another module, and another name.
        ("other/shapes.py", "TILE = 1\n", "TILE = 1\n"),
        (
            "other/own.py",
            "from shapes import TILE\n",
            "from shapes import TILE\n",
        ),
        ("own.py", "TILE = 2\nprint(TILE)\n", "TILE = 2\nprint(TILE)\n"),
    ];
    for (name, text, _) in &files {
        fs::write(folder.path(&format!("kernels/{name}")), text).unwrap();
    }
    let place = folder.path("kernels").canonicalize().unwrap();
    let uri = |name: &str| format!("file://{}/{name}", place.display());
    let mut session = Session::start();
    let open = |session: &mut Session, name: &str, text: &str| {
        let document = json!({"uri": uri(name), "languageId": "python", "version": 1, "text": text});
        session.tell("textDocument/didOpen", json!({"textDocument": document}));
    };
    // Where it is defined: imported by its name, under another one, behind a module and behind a module's own name, and
    // from the file's own package.
    for (name, part, skipped) in [
        ("named.py", "TILE,", 1),
        ("renamed.py", "= W", 2),
        ("modules.py", "lib.shapes.TILE", 12),
        ("modules.py", "s.TILE +", 3),
        ("lib/beside.py", "(TILE)", 2),
    ] {
        let text = files.iter().find(|(file, ..)| *file == name).unwrap().1;
        open(&mut session, name, text);
        let params = json!({"textDocument": {"uri": uri(name)}, "position": at(text, part, skipped)});
        let place = session.ask("textDocument/definition", params);
        assert_eq!(place["uri"], uri("lib/shapes.py"), "{name}, {part}: {place}");
        assert_eq!(place["range"]["start"]["line"], 0, "{name}, {part}: {place}");
    }
    // From where it is defined, from where it is imported, and from behind a module.
    for (name, part) in [
        ("lib/shapes.py", "TILE"),
        ("named.py", "TILE,"),
        ("modules.py", "TILE +"),
    ] {
        let text = files.iter().find(|(file, ..)| *file == name).unwrap().1;
        open(&mut session, name, text);
        let params =
            json!({"textDocument": {"uri": uri(name)}, "position": at(text, part, 1), "newName": "WIDTH"});
        let changes = session.ask("textDocument/rename", params)["changes"].clone();
        for (file, before, after) in &files {
            let edits = &changes[uri(file)];
            let now = match edits.is_null() {
                true => (*before).to_string(),
                false => edited(before, edits),
            };
            assert_eq!(now, *after, "{file} from {name}: {changes}");
        }
    }
    // A name of a function, and one that is no name.
    open(&mut session, "local.py", "def f(x):\n    y = x\n    return y\n");
    let local = |new: &str| json!({"textDocument": {"uri": uri("local.py")}, "position": {"line": 1, "character": 4}, "newName": new});
    let changes = session.ask("textDocument/rename", local("z"));
    assert_eq!(changes["changes"].as_object().unwrap().len(), 1, "{changes}");
    assert!(session.ask("textDocument/rename", local("1z")).is_null());
    session.tell("exit", Value::Null);
    session.child.wait().unwrap();
}

/// A kernel of a library that the package depends on, imported by its name, behind a module, and by way of another file of the library.
#[test]
fn definitions_are_found_in_libraries() {
    let folder = Folder::new();
    let write = |file: &str, text: &str| {
        let path = folder.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let manifest = |name: &str, more: &str| {
        format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{more}\n[workspace]\n"
        )
    };
    write("far/Cargo.toml", &manifest("far", "links = \"far-kernels\"\n"));
    write("far/build.rs", "fn main() {}\n");
    write("far/src/lib.rs", "");
    write("far/kernels.toml", "");
    write("far/all.py", "from .shapes import twice\n");
    write("far/shapes.py", SHAPES);
    write(
        "near/Cargo.toml",
        &manifest("near", "[dependencies]\nfar = { path = \"../far\" }\n"),
    );
    write("near/src/lib.rs", "");
    let text = "from far_kernels.shapes import WIDTH\nfrom far_kernels import shapes as s\nfrom far_kernels.all import twice\n\
        x = WIDTH + s.twice(1) + twice(2)\n";
    write("near/kernels/k.py", text);
    let at_file = |file: &str| format!("file://{}", folder.path(file).canonicalize().unwrap().display());
    let (uri, shapes) = (at_file("near/kernels/k.py"), at_file("far/shapes.py"));
    let mut session = Session::start();
    let document = json!({"uri": uri, "languageId": "python", "version": 1, "text": text});
    session.tell("textDocument/didOpen", json!({"textDocument": document}));
    for (part, skipped, line) in [
        ("= WIDTH", 3, 0),
        ("s.twice", 3, 3),
        ("twice(2)", 1, 3),
        ("WIDTH\n", 1, 0),
    ] {
        let params = json!({"textDocument": {"uri": uri}, "position": at(text, part, skipped)});
        let place = session.ask("textDocument/definition", params);
        assert_eq!(
            (&place["uri"], &place["range"]["start"]["line"]),
            (&json!(shapes), &json!(line)),
            "{part}: {place}"
        );
    }
    // What a library defines is not renamed from outside.
    let params = json!({"textDocument": {"uri": uri}, "position": at(text, "= WIDTH", 3), "newName": "W"});
    let changes = session.ask("textDocument/rename", params)["changes"].clone();
    assert!(changes.get(&shapes).is_none(), "{changes}");
    session.tell("exit", Value::Null);
    session.child.wait().unwrap();
}

#[test]
fn stubs_are_written() {
    let folder = Folder::new();
    let outcome = folder.run(&["stubs"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    let files = outcome
        .out
        .strip_prefix("wrote ")
        .and_then(|rest| rest.strip_suffix(" files below typings\n"));
    assert!(
        files.is_some_and(|count| count.parse::<u32>().is_ok_and(|count| count > 30)),
        "{}",
        outcome.out
    );
    let text = fs::read_to_string(folder.path("typings/tvm/script/tirx/__init__.pyi")).unwrap();
    assert!(
        text.contains("class ptx(metaclass=Open):") && text.contains("    @staticmethod\n    def "),
        "{text:.300}"
    );
    let outcome = folder.run(&["stubs", "--package", "--out", "wheel"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert!(
        folder.path("wheel/tvm-stubs/script/tirx/tile.pyi").is_file()
            && folder.path("wheel/pyproject.toml").is_file()
    );
}
