//! `cargo tirx lsp`: a language server for kernel files, over stdin and stdout.
//!
//! | file | question |
//! |---|---|
//! | `answers` | what does an editor get for each request? |
//! | `files` | which other files does a kernel file depend on? |
//! | `modules` | which file does an import mean? |
//! | `rename` | what changes where a name gets another one? |
//! | `uri` | which file does an editor mean? |
//!
//! The answers themselves are computed by `tirx_services::editor`.

mod answers;
mod files;
mod modules;
mod rename;
mod uri;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use lsp_types::notification::Notification as _;
use lsp_types::request::Request as _;
use lsp_types::{
    CodeActionProviderCapability, CompletionOptions, HoverProviderCapability, OneOf,
    PublishDiagnosticsParams, ServerCapabilities, SignatureHelpOptions, TextDocumentSyncCapability,
    TextDocumentSyncKind, Uri, notification, request,
};
use serde::de::DeserializeOwned;

use crate::failure::{Result, user};
use crate::output::Output;
use files::analyzed;
use tirx_services::editor::{self, Document};
use uri::path_of;

#[derive(clap::Args, Debug)]
pub(crate) struct Lsp {
    /// Accepted for editors that give it; the server always talks over stdin and stdout.
    #[arg(long, hide = true)]
    stdio: bool,
}

/// An open file.
struct File {
    path: PathBuf,
    document: Document,
}

#[derive(Default)]
struct Server {
    files: BTreeMap<String, File>,
}

pub(crate) fn run(_: &Lsp, _: &Output) -> Result<()> {
    let (connection, threads) = Connection::stdio();
    let served = serve(&connection);
    // The writer ends when the connection is gone.
    drop(connection);
    served.map_err(|error| user(format_args!("the editor's connection fails: {error}")))?;
    threads
        .join()
        .map_err(|error| user(format_args!("the editor's connection fails: {error}")))
}

fn capabilities() -> ServerCapabilities {
    ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Kind(TextDocumentSyncKind::FULL)),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some(vec![".".into()]),
            ..CompletionOptions::default()
        }),
        signature_help_provider: Some(SignatureHelpOptions {
            trigger_characters: Some(vec!["(".into(), ",".into()]),
            ..SignatureHelpOptions::default()
        }),
        definition_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Left(true)),
        inlay_hint_provider: Some(OneOf::Left(true)),
        code_action_provider: Some(CodeActionProviderCapability::Simple(true)),
        ..ServerCapabilities::default()
    }
}

type Served<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn serve(connection: &Connection) -> Served<()> {
    connection.initialize(serde_json::to_value(capabilities())?)?;
    let mut server = Server::default();
    while let Ok(first) = connection.receiver.recv() {
        // Texts that came while the last one was compiled are taken together.
        let mut messages = vec![first];
        messages.extend(connection.receiver.try_iter());
        let mut changed: Vec<String> = Vec::new();
        for message in messages {
            match message {
                Message::Notification(notification) => {
                    changed.extend(server.notified(connection, notification)?);
                }
                Message::Request(request) => {
                    if connection.handle_shutdown(&request)? {
                        return Ok(());
                    }
                    server.analyze(connection, &std::mem::take(&mut changed))?;
                    connection
                        .sender
                        .send(Message::Response(server.answer(request)))?;
                }
                Message::Response(_) => {}
            }
        }
        server.analyze(connection, &changed)?;
    }
    Ok(())
}

impl Server {
    /// Takes a change; gives the files that it changes.
    fn notified(&mut self, connection: &Connection, notification: Notification) -> Served<Vec<String>> {
        fn read<T: DeserializeOwned>(notification: Notification) -> Option<T> {
            // What no client should send is ignored, as the protocol says of notifications.
            serde_json::from_value(notification.params).ok()
        }
        let changed = match notification.method.as_str() {
            notification::DidOpenTextDocument::METHOD => {
                read::<lsp_types::DidOpenTextDocumentParams>(notification)
                    .map(|opened| (opened.text_document.uri, opened.text_document.text))
            }
            notification::DidChangeTextDocument::METHOD => {
                read::<lsp_types::DidChangeTextDocumentParams>(notification).and_then(|changed| {
                    let text = changed.content_changes.into_iter().next_back()?.text;
                    Some((changed.text_document.uri, text))
                })
            }
            notification::DidCloseTextDocument::METHOD => {
                if let Some(closed) = read::<lsp_types::DidCloseTextDocumentParams>(notification) {
                    self.files.remove(closed.text_document.uri.as_str());
                    publish(connection, closed.text_document.uri, Vec::new())?;
                }
                None
            }
            _ => None,
        };
        let Some((uri, text)) = changed else {
            return Ok(Vec::new());
        };
        let name = uri.as_str().to_string();
        let file = self.files.entry(name.clone()).or_insert_with(|| {
            let path = path_of(uri.as_str());
            let shown = path.file_name().unwrap_or_default().to_string_lossy();
            let document = Document {
                name: shown.into_owned(),
                ..Document::default()
            };
            File { path, document }
        });
        file.document.text = text;
        Ok(vec![name])
    }

    /// Compiles the files that have changed, and those that are open beside them, and tells the editor.
    fn analyze(&mut self, connection: &Connection, changed: &[String]) -> Served<()> {
        if changed.is_empty() {
            return Ok(());
        }
        let open: BTreeMap<PathBuf, String> = self
            .files
            .values()
            .map(|file| (file.path.clone(), file.document.text.clone()))
            .collect();
        let stems: Vec<String> = changed
            .iter()
            .filter_map(|name| {
                Some(
                    self.files
                        .get(name)?
                        .path
                        .file_stem()?
                        .to_string_lossy()
                        .into_owned(),
                )
            })
            .collect();
        for (name, file) in &mut self.files {
            let imports = |stem: &String| {
                let mut lines = file.document.text.lines();
                lines.any(|line| line.contains("import") && line.contains(stem.as_str()))
            };
            if !changed.contains(name) && !stems.iter().any(imports) {
                continue;
            }
            // A defect of the compiler must not end the editor's server.
            let compiled = catch_unwind(AssertUnwindSafe(|| {
                analyzed(&file.path, &file.document.text, &open)
            }));
            let Ok(now) = compiled else { continue };
            file.document.analyzed(now);
            if let Ok(uri) = name.parse() {
                publish(connection, uri, editor::diagnostics(&file.document))?;
            }
        }
        Ok(())
    }

    fn answer(&self, request: Request) -> Response {
        let Request { id, method, params } = request;
        macro_rules! answer {
            ($($request:ty => $function:path,)*) => {
                match method.as_str() {
                    $(<$request>::METHOD => match serde_json::from_value(params) {
                        Ok(params) => Response::new_ok(id, $function(self, &params)),
                        Err(error) => Response::new_err(id, ErrorCode::InvalidParams as i32, error.to_string()),
                    },)*
                    _ => Response::new_err(id, ErrorCode::MethodNotFound as i32, format!("`{method}` is not supported")),
                }
            };
        }
        answer! {
            request::HoverRequest => answers::hover,
            request::Completion => answers::completion,
            request::SignatureHelpRequest => answers::signature,
            request::GotoDefinition => answers::definition,
            request::Rename => rename::rename,
            request::InlayHintRequest => answers::hints,
            request::CodeActionRequest => answers::actions,
        }
    }

    fn file(&self, uri: &Uri) -> Option<&File> {
        self.files.get(uri.as_str())
    }
}

fn publish(connection: &Connection, uri: Uri, diagnostics: Vec<lsp_types::Diagnostic>) -> Served<()> {
    let params = PublishDiagnosticsParams {
        uri,
        diagnostics,
        version: None,
    };
    let method = notification::PublishDiagnostics::METHOD.to_string();
    let notification = Notification::new(method, params);
    connection.sender.send(Message::Notification(notification))?;
    Ok(())
}
