//! A home for Gemini, which takes servers of tools only from its own folders: all that the user has in theirs, by links,
//! and one extension more. Whatever it writes to files of the user's, such as a new token, is written there.

use std::{fs, io, path::Path};

use serde_json::json;

use crate::{agent::ToolServer, safe_files};

/// Its folder in a home, and that of its extensions there.
const FOLDER: &str = ".gemini";
const EXTENSIONS: &str = "extensions";
/// What else it reads in a home.
const BESIDE: [&str; 2] = [".env", ".agents"];
/// What it may write anew and must not be lost, whether it is there yet or not.
const CREDENTIALS: [&str; 5] = [
    "oauth_creds.json",
    "google_accounts.json",
    "gemini-credentials.json",
    "mcp-oauth-tokens.json",
    "a2a-oauth-tokens.json",
];
/// What our extension is called.
const OURS: &str = "git-arborist-tools";

/// Makes `home` such a home. What Gemini has made there itself before stays, so that it finds its conversations again.
pub(in crate::pipeline) fn furnish(home: &Path, user: &Path, server: &ToolServer) -> io::Result<()> {
    let (folder, theirs) = (home.join(FOLDER), user.join(FOLDER));
    let ours = folder.join(EXTENSIONS).join(OURS);
    safe_files::make_folders(&ours)?;
    link_all(&theirs, &folder, &[EXTENSIONS])?;
    link_all(&theirs.join(EXTENSIONS), &folder.join(EXTENSIONS), &[OURS])?;
    if theirs.is_dir() {
        CREDENTIALS.iter().try_for_each(|name| link(&theirs.join(name), &folder.join(name)))?;
    }
    for name in BESIDE.iter().filter(|name| user.join(name).exists()) {
        link(&user.join(name), &home.join(name))?;
    }
    // Before it starts itself anew it looks for its settings here.
    link(&theirs.join("settings.json"), &home.join("settings.json"))?;
    let script = ours.join("serve.sh");
    safe_files::write(&script, script_of(server).as_bytes())?;
    safe_files::write(&ours.join("gemini-extension.json"), extension(&script, server).as_bytes())?;
    let source = json!({ "source": ours.to_string_lossy(), "type": "local" });
    safe_files::write(&ours.join(".gemini-extension-install.json"), source.to_string().as_bytes())
}

/// Links to everything in a folder but for these.
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

/// A link instead of whatever file is there. A folder that Gemini made stays.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    match fs::symlink_metadata(to) {
        Ok(_) if fs::read_link(to).is_ok_and(|target| target == from) => return Ok(()),
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => safe_files::remove(to)?,
        Err(_) => {}
    }
    safe_files::symlink(from, to)
}

/// Gemini puts the values of variables into all that it reads of a server: what is started stands in a script.
fn extension(script: &Path, server: &ToolServer) -> String {
    let tools = json!({
        "command": "sh",
        "args": [script.to_string_lossy()],
        "timeout": server.patience.saturating_mul(1000),
    });
    json!({ "name": OURS, "version": "1.0.0", "mcpServers": { ToolServer::NAME: tools } }).to_string()
}

fn script_of(server: &ToolServer) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let env = server.env.iter().map(|(name, value)| format!("export {name}={}\n", quoted(value)));
    let words: Vec<String> =
        std::iter::once(&server.program).chain(&server.args).map(|word| quoted(word)).collect();
    format!("{}exec {}\n", env.collect::<String>(), words.join(" "))
}
