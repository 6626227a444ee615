//! The configuration file: every key with its description. Detected values are set, everything else is commented out.

use arborist_core::settings::{SETTINGS, SIGN, Setting, ValueKind};

use super::WorktreeProposal;

const WIDTH: usize = 100;

/// The file, with the agent, the test command and the needs of worktrees that were found.
pub(super) fn write(agent: Option<&str>, test: Option<&str>, needs: &WorktreeProposal) -> String {
    let mut text =
        "# Configuration of git arborist. It is tracked: everyone who clones this repository gets it.\n"
            .to_owned();
    let is_for_files = |setting: &&Setting| !setting.key.contains('.') && setting.key != SIGN;
    for setting in SETTINGS.iter().filter(is_for_files) {
        let found = match setting.key {
            "runner" => agent,
            "test-command" => test,
            _ => None,
        };
        text += &comment(setting);
        text += &match found {
            Some(value) => format!("{} = {}\n", setting.key, serde_json::Value::from(value)),
            None => format!("# {} = {}\n", setting.key, sample(setting)),
        };
    }
    let mut headings: Vec<String> = Vec::new();
    for setting in SETTINGS.iter().filter(|setting| setting.key.contains('.')) {
        let heading = heading(setting.key).0;
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    for heading in headings {
        text += &section(&heading, needs);
    }
    text
}

/// The keys of one section, commented out except detected ones.
fn section(name: &str, needs: &WorktreeProposal) -> String {
    let found = |key: &str| match key {
        "worktree.setup" => Some(&needs.setup).filter(|words| !words.is_empty()),
        "worktree.copy" => Some(&needs.copy).filter(|words| !words.is_empty()),
        _ => None,
    };
    let is_found = |setting: &&Setting| heading(setting.key).0 == name && found(setting.key).is_some();
    let mut text = match name {
        "merge.gates" => format!("\n# [[{name}]]\n# name = \"test\"\n"),
        _ if SETTINGS.iter().any(|setting| is_found(&setting)) => format!("\n[{name}]\n"),
        _ => format!("\n# [{name}]\n"),
    };
    for setting in SETTINGS.iter().filter(|setting| setting.key.contains('.')) {
        let (heading, key) = heading(setting.key);
        if heading == name {
            text += &comment(setting);
            text += &match found(setting.key) {
                Some(words) => format!("{key} = {}\n", serde_json::Value::from(words.clone())),
                None => format!("# {key} = {}\n", sample(setting)),
            };
        }
    }
    text
}

/// The section and the rest of a key. A `*` is replaced by an example name.
fn heading(key: &str) -> (String, String) {
    let mut parts: Vec<&str> = Vec::new();
    for part in key.split('.') {
        let before = parts.last().copied();
        match (part, before) {
            ("*", Some("gates")) => {}
            ("*", Some("steps")) => parts.push("review"),
            ("*", Some("runners")) => parts.push("robot"),
            ("*", Some("repos")) => parts.push("backend"),
            ("*", _) => parts.push("NAME"),
            (part, _) => parts.push(part),
        }
    }
    let of_key = if key.ends_with(".*") { 2 } else { 1 };
    let (heading, rest) = parts.split_at(parts.len() - of_key);
    (heading.join("."), rest.join("."))
}

fn comment(setting: &Setting) -> String {
    let mut text = String::from("\n#");
    let mut width = 1;
    for word in format!("{} Default: {}.", setting.about, default_with_unit(setting)).split_whitespace() {
        if width + 1 + word.chars().count() > WIDTH {
            text += "\n#";
            width = 1;
        }
        text += " ";
        text += word;
        width += 1 + word.chars().count();
    }
    text + "\n"
}

/// The default with its unit, if it is a number that has one.
fn default_with_unit(setting: &Setting) -> String {
    let (default, expected) = (setting.default.to_string(), setting.expected());
    let unit = expected.strip_prefix("a number of ").and_then(|unit| unit.split(',').next());
    match unit.filter(|_| default.parse::<f64>().is_ok()) {
        Some(unit) => format!("{default} {unit}"),
        None => default,
    }
}

/// An example value: the default, if that is a value.
fn sample(setting: &Setting) -> String {
    let (kind, default) = (setting.kind, setting.default.to_string());
    let is_number = default.parse::<f64>().is_ok();
    match kind {
        ValueKind::Switch if default.parse::<bool>().is_err() => "true".to_owned(),
        ValueKind::Switch => default,
        ValueKind::Count | ValueKind::Positive | ValueKind::Amount | ValueKind::Size if is_number => default,
        ValueKind::Size => "\"auto\"".to_owned(),
        ValueKind::Count | ValueKind::Positive => "1000".to_owned(),
        ValueKind::Amount => "10.0".to_owned(),
        ValueKind::Choice(words) => format!("\"{}\"", words.first().unwrap_or(&"…")),
        ValueKind::Words => "[\"…\"]".to_owned(),
        ValueKind::Folders => "[\"~/…\"]".to_owned(),
        ValueKind::Pathspecs => "\"tests\"".to_owned(),
        ValueKind::Text | ValueKind::InnerPath | ValueKind::Name | ValueKind::Command
            if !is_value(&default) =>
        {
            "\"…\"".to_owned()
        }
        ValueKind::Text | ValueKind::InnerPath | ValueKind::Name | ValueKind::Command | ValueKind::Age => {
            format!("\"{default}\"")
        }
    }
}

/// Whether a default is a value. Some keys describe their default in words, or name another key.
fn is_value(default: &str) -> bool {
    let is_word = ["nothing", "none", "always"].contains(&default);
    !is_word && !default.contains(' ') && SETTINGS.iter().all(|setting| setting.key != default)
}
