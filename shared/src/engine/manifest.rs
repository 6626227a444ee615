//! Manifests: files that describe workers to an engine, as Kubernetes takes them. Users edit them.

use std::{collections::BTreeSet, io::ErrorKind, path::Path};

use super::{
    Engine, EngineError, Submission,
    preset::{KUBERNETES, NO_IMAGE},
    template::fill,
};
use crate::safe_files::{self, InnerPath};

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
