//! A private home directory for Gemini, which reads MCP servers only from folders below its home. The private home
//! links to everything in the user's home and adds one extension. So changes to the user's files, such as a new token,
//! reach them.

use std::{fs, io, path::Path};

use serde_json::json;

use crate::{
    agent::ToolServer,
    pipeline::{PipelineError, calls::caller::file_error},
    safe_files::{self, FileKind, FolderEntry},
};

/// Gemini's folder below a home directory, and the folder of extensions in it.
const FOLDER: &str = ".gemini";
const EXTENSIONS: &str = "extensions";
/// Other entries that Gemini reads in a home directory.
const OTHER_ENTRIES: [&str; 2] = [".env", ".agents"];
/// Files that Gemini may replace and that must reach the user's home, whether they exist yet or not.
const CREDENTIALS: [&str; 5] = [
    "oauth_creds.json",
    "google_accounts.json",
    "gemini-credentials.json",
    "mcp-oauth-tokens.json",
    "a2a-oauth-tokens.json",
];
/// The name of our extension.
const EXTENSION_NAME: &str = "git-arborist-tools";

/// The folder in which Gemini keeps its conversations, the file with the name of each project in it, and the folder of
/// programs in it.
const CONVERSATIONS: &str = "tmp";
const PROJECTS: &str = "projects.json";
const PROGRAMS: &str = "bin";

/// Removes a home, so that the next call finds nothing that an earlier one left there.
pub(in crate::pipeline) fn remove(home: &Path) -> Result<(), PipelineError> {
    safe_files::remove_all(home).map_err(|source| file_error(home, source))
}

/// Prepares `home`. Only the conversations of earlier calls are kept: an agent can write there, and everything else is
/// obeyed by the next call.
pub(in crate::pipeline) fn prepare(home: &Path, user: &Path, server: &ToolServer) -> io::Result<()> {
    let (folder, theirs) = (home.join(FOLDER), user.join(FOLDER));
    remove_entries(home, &[FOLDER])?;
    remove_entries(&folder, &[CONVERSATIONS, PROJECTS])?;
    safe_files::remove_all(&folder.join(CONVERSATIONS).join(PROGRAMS))?;
    let ours = folder.join(EXTENSIONS).join(EXTENSION_NAME);
    safe_files::make_folders(&ours)?;
    link_all(&theirs, &folder, &[EXTENSIONS])?;
    link_all(&theirs.join(EXTENSIONS), &folder.join(EXTENSIONS), &[EXTENSION_NAME])?;
    if theirs.is_dir() {
        CREDENTIALS.iter().try_for_each(|name| link(&theirs.join(name), &folder.join(name)))?;
    }
    for name in OTHER_ENTRIES.iter().filter(|name| user.join(name).exists()) {
        link(&user.join(name), &home.join(name))?;
    }
    // Before Gemini restarts itself, it looks for its settings here.
    link(&theirs.join("settings.json"), &home.join("settings.json"))?;
    let script = ours.join("serve.sh");
    safe_files::write(&script, script_of(server).as_bytes())?;
    safe_files::write(&ours.join("gemini-extension.json"), extension(&script, server).as_bytes())?;
    let source = json!({ "source": ours.to_string_lossy(), "type": "local" });
    safe_files::write(&ours.join(".gemini-extension-install.json"), source.to_string().as_bytes())
}

/// Removes all entries of a folder, except for files and folders with these names.
fn remove_entries(folder: &Path, kept: &[&str]) -> io::Result<()> {
    let entries = safe_files::list_kinds(folder)?;
    let is_kept = |entry: &FolderEntry| {
        let is_plain = matches!(entry.kind, FileKind::File | FileKind::Folder);
        is_plain && kept.iter().any(|name| entry.path == folder.join(name))
    };
    let mut others = entries.iter().filter(|entry| !is_kept(entry));
    others.try_for_each(|entry| safe_files::remove_all(&entry.path))
}

/// Creates links to all entries of a folder, except these.
fn link_all(from: &Path, to: &Path, except: &[&str]) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(from) else { return Ok(()) };
    for entry in entries {
        let name = entry?.file_name();
        if !except.iter().any(|known| name == *known) {
            link(&from.join(&name), &to.join(&name))?;
        }
    }
    Ok(())
}

/// Replaces a file by a link. A folder that Gemini created is kept.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    match fs::symlink_metadata(to) {
        Ok(_) if fs::read_link(to).is_ok_and(|target| target == from) => return Ok(()),
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => safe_files::remove(to)?,
        Err(_) => {}
    }
    safe_files::symlink(from, to)
}

/// The extension starts a script, because Gemini expands variables in every field of a server definition.
fn extension(script: &Path, server: &ToolServer) -> String {
    let tools = json!({
        "command": "sh",
        "args": [script.to_string_lossy()],
        "timeout": server.patience.saturating_mul(1000),
    });
    json!({ "name": EXTENSION_NAME, "version": "1.0.0", "mcpServers": { ToolServer::NAME: tools } })
        .to_string()
}

fn script_of(server: &ToolServer) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let env = server.env.iter().map(|(name, value)| format!("export {name}={}\n", quoted(value)));
    let words: Vec<String> =
        std::iter::once(&server.program).chain(&server.args).map(|word| quoted(word)).collect();
    format!("{}exec {}\n", env.collect::<String>(), words.join(" "))
}
