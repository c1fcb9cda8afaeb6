// Starts `cargo tirx lsp` for the Python files of a workspace that has a kernels.toml.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const [command, ...args] = workspace.getConfiguration("tirx").get("command");
  client = new LanguageClient("tirx", "TIRx", { command, args }, { documentSelector: [{ scheme: "file", language: "python" }] });
  return client.start();
};

exports.deactivate = () => client && client.stop();
