//! Manifests: files that describe workers to an engine, as Kubernetes takes them. Users edit them. And the placeholders in
//! manifests and commands.

use std::{collections::BTreeSet, io::ErrorKind, path::Path};

use super::{
    Engine, EngineError, Submission,
    preset::{KUBERNETES, NO_IMAGE},
};
use crate::safe_files::{self, InnerPath};

/// A placeholder that no command of an engine has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnknownPlaceholder(pub(super) String);

/// Fills `{name}` with the value of `name`, which has to be quoted already. `{{name}}` stands for `{name}`. What is not a
/// lower-case word in braces, and what follows a `$`, belongs to the shell and stays.
pub(super) fn fill(
    template: &str,
    value: impl Fn(&str) -> Option<String>,
) -> Result<String, UnknownPlaceholder> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        let (before, behind) = rest.split_at(at);
        filled.push_str(before);
        let is_doubled = behind.starts_with("{{");
        let inner = behind.trim_start_matches('{');
        let length = inner.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(inner.len());
        let (name, end) = inner.split_at(length);
        let opened = behind.len() - inner.len();
        if is_doubled && opened == 2 && !name.is_empty() && end.starts_with("}}") {
            filled.push_str(&format!("{{{name}}}"));
            rest = &end[2..];
        } else if opened == 1 && !before.ends_with('$') && !name.is_empty() && end.starts_with('}') {
            let value = value(name).ok_or_else(|| UnknownPlaceholder(name.to_owned()))?;
            filled.push_str(&value);
            rest = &end[1..];
        } else {
            filled.push_str(&behind[..opened]);
            rest = inner;
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

impl Engine {
    /// The manifest, if the engine has one, and what the user has to approve of it. If the file of a built-in engine is
    /// missing, it is written, and the user has to edit it first.
    pub(super) fn load_manifest(
        &self,
        top: &Path,
    ) -> Result<(Option<String>, BTreeSet<String>), EngineError> {
        let Some(path) = &self.manifest else { return Ok((None, BTreeSet::new())) };
        let failed = |why: String| EngineError::Manifest { path: path.clone(), why };
        path.parse::<InnerPath>().map_err(|error| failed(error.to_string()))?;
        let is_built_in = self.preset.is_some_and(|preset| preset.manifest == Some(path.as_str()));
        let text = match safe_files::read_beneath(top, path) {
            Ok(bytes) => String::from_utf8(bytes).map_err(|_| failed("it is not valid UTF-8".into()))?,
            Err(error) if error.kind() == ErrorKind::NotFound && is_built_in => {
                let file = top.join(path);
                let folder = file.parent().unwrap_or(top);
                safe_files::make_folders(folder)
                    .and_then(|()| safe_files::write_new(&file, KUBERNETES.as_bytes()))
                    .map_err(|error| failed(error.to_string()))?;
                return Err(EngineError::NewManifest(path.clone()));
            }
            Err(error) => return Err(failed(error.to_string())),
        };
        if text.contains(NO_IMAGE) {
            return Err(EngineError::NoImage(path.clone()));
        }
        let approval = format!("engines.{}: the file {path}:\n{text}", self.name);
        Ok((Some(text), BTreeSet::from([approval])))
    }
}

impl Submission<'_> {
    /// Fills a manifest. Its values are JSON, which is also YAML. Kubernetes replaces `$$` by `$`, so that a `$` of the
    /// script has to be doubled.
    pub(super) fn fill_manifest(&self, manifest: &str, script: &str) -> Result<String, EngineError> {
        let text = |text: &str| serde_json::Value::from(text).to_string();
        // Comments may name placeholders.
        let lines = manifest.lines().map(|line| {
            if line.trim_start().starts_with('#') {
                return Ok(line.to_owned());
            }
            fill(line, |name| match name {
                "name" => Some(text(&self.name)),
                "workers" => Some(self.workers.to_string()),
                "branch" => Some(text(self.order.branch.as_str())),
                "script" => Some(text(&script.replace('$', "$$"))),
                _ => None,
            })
        });
        let filled: Result<Vec<String>, _> = lines.collect();
        let filled = filled.map_err(|error| self.engine.unknown_placeholder("manifest", error))?;
        Ok(filled.join("\n") + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::shell_word;

    #[test]
    fn placeholder_values_are_quoted_and_shell_syntax_is_kept() {
        let value = |name: &str| match name {
            "job" => Some(shell_word("12_3")),
            "place" => Some(shell_word("a b'; rm -rf x")),
            _ => None,
        };
        for (template, expected) in [
            ("x {job}", "x 12_3"),
            ("x {place}", r"x 'a b'\''; rm -rf x'"),
            ("x ${job} {.status.phase} {HOME}", "x ${job} {.status.phase} {HOME}"),
            ("awk '{{print}}'", "awk '{print}'"),
            ("a{job}{job}b{", "a12_312_3b{"),
            ("{{{job}", "{{{job}"),
        ] {
            assert_eq!(fill(template, value).unwrap(), expected, "{template}");
        }
        assert_eq!(fill("{jbo}", value), Err(UnknownPlaceholder("jbo".into())));
    }
}
