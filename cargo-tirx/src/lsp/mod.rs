//! `cargo tirx lsp`: a language server for kernel files, over stdin and stdout.
//!
//! | file | question |
//! |---|---|
//! | `analysis` | what does the compiler say of a file? |
//! | `text` | what stands at a position, and where is a name used? |
//! | `answers` | what does an editor get for each request? |
//! | `modules` | which file does an import mean? |
//! | `rename` | what changes where a name gets another one? |
//! | `uri` | which file does an editor mean? |

mod analysis;
mod answers;
mod modules;
mod rename;
mod text;
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
use analysis::{Analysis, analyze};
use uri::path_of;

#[derive(clap::Args, Debug)]
pub(crate) struct Lsp {
    /// Accepted for editors that give it; the server always talks over stdin and stdout.
    #[arg(long, hide = true)]
    stdio: bool,
}

/// An open file.
struct Document {
    path: PathBuf,
    text: String,
    /// What the compiler said of the text, and of the last text that it could build: names are completed and shown while
    /// a line is unfinished.
    analysis: Analysis,
}

#[derive(Default)]
struct Server {
    documents: BTreeMap<String, Document>,
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
                    self.documents.remove(closed.text_document.uri.as_str());
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
        let document = self.documents.entry(name.clone()).or_insert_with(|| Document {
            path: path_of(uri.as_str()),
            text: String::new(),
            analysis: Analysis::default(),
        });
        document.text = text;
        Ok(vec![name])
    }

    /// Compiles the files that have changed, and those that are open beside them, and tells the editor.
    fn analyze(&mut self, connection: &Connection, changed: &[String]) -> Served<()> {
        if changed.is_empty() {
            return Ok(());
        }
        let open: BTreeMap<PathBuf, String> = self
            .documents
            .values()
            .map(|document| (document.path.clone(), document.text.clone()))
            .collect();
        let stems: Vec<String> = changed
            .iter()
            .filter_map(|name| {
                Some(
                    self.documents
                        .get(name)?
                        .path
                        .file_stem()?
                        .to_string_lossy()
                        .into_owned(),
                )
            })
            .collect();
        for (name, document) in &mut self.documents {
            let imports = |stem: &String| {
                let mut lines = document.text.lines();
                lines.any(|line| line.contains("import") && line.contains(stem.as_str()))
            };
            if !changed.contains(name) && !stems.iter().any(imports) {
                continue;
            }
            // A defect of the compiler must not end the editor's server.
            let compiled = catch_unwind(AssertUnwindSafe(|| {
                analyze(&document.path, &document.text, &open)
            }));
            let Ok(mut now) = compiled else { continue };
            if now.names.is_empty() && !now.messages.is_empty() {
                now.names = std::mem::take(&mut document.analysis.names);
            }
            document.analysis = now;
            if let Ok(uri) = name.parse() {
                publish(connection, uri, answers::diagnostics(document))?;
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

    fn document(&self, uri: &Uri) -> Option<&Document> {
        self.documents.get(uri.as_str())
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
