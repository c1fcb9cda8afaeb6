//! `cargo tirx docs NAME`: what a name of the language means.

use tirx_services::reference::{find, names, shown};

use crate::failure::{Result, user};
use crate::output::{Output, out};

#[derive(clap::Args, Debug)]
pub(crate) struct Docs {
    /// A name of `T` or `Tx`, a class of the library, or a method: `T.cuda.cta_sync`, `Pipeline`, `Buffer.ptr_to`; its
    /// last part is enough. Without a name, it lists all names.
    name: Option<String>,
    /// Prints the entries as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: &Docs, _: &Output) -> Result<()> {
    let Some(name) = &command.name else {
        return out(&(names().join("\n") + "\n"));
    };
    let entries = find(name).map_err(|near| {
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`cargo tirx docs` lists all names".to_string(),
        };
        user(format_args!(
            "the language has no name `{name}`\n  = help: {help}"
        ))
    })?;
    if command.json {
        return out(&(serde_json::to_string_pretty(&entries).unwrap_or_default() + "\n"));
    }
    let texts: Vec<String> = entries.iter().map(shown).collect();
    out(&texts.join("\n"))
}
