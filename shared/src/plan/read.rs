//! Which reader a file is for, and how several files make one plan.

use super::{
    Plan, PlanError, Problem,
    assemble::{assemble, wrong},
    json, markdown,
    text::{SpecFile, decode},
};
use crate::{
    git::{GitError, Repository},
    message::PlanRef,
};

/// What is wrong with a file of prose.
const NO_TASKS: &str = "no tasks were found";

/// Whether a file has only prose, and nothing that looks like a plan.
pub(super) fn is_prose(label: &str, bytes: &[u8]) -> bool {
    match Plan::read(label, bytes) {
        Ok(_) => false,
        Err(error) => !error.problems().is_empty() && error.problems().iter().all(|it| it.what == NO_TASKS),
    }
}

impl Plan {
    /// Reads a plan from a file's content, JSON or Markdown. `label` is how the file is named in messages.
    pub fn read(label: &str, bytes: &[u8]) -> Result<Self, PlanError> {
        Self::read_all(&[(label, bytes)])
    }

    /// Reads the plan that a run was frozen with. `None` if it has none, or if the file is not in this repository. A
    /// later version may not be able to read the plan of an earlier one.
    pub fn read_frozen(
        repository: &Repository,
        frozen: Option<&PlanRef>,
    ) -> Result<Option<Result<Self, PlanError>>, GitError> {
        let Some(PlanRef { path, blob }) = frozen else { return Ok(None) };
        let bytes = repository.find_blob(*blob)?;
        Ok(bytes.map(|bytes| Self::read(path, &bytes)))
    }

    /// Reads several Markdown files as parts of one plan, in their order. JSON plans stand alone.
    pub fn read_all(documents: &[(&str, &[u8])]) -> Result<Self, PlanError> {
        let read = |(label, bytes): &(&str, &[u8])| is_json(label, bytes);
        match documents {
            [(label, bytes)] if is_json(label, bytes) => json::read(SpecFile::new(label, bytes)?),
            _ => match documents.iter().find(|document| read(document)) {
                Some((label, bytes)) => Err(combined_json_error(label, bytes)),
                None => read_markdown(documents),
            },
        }
    }
}

/// By its name, else by how it begins.
fn is_json(label: &str, bytes: &[u8]) -> bool {
    let has_ending = |ending: &str| label.to_ascii_lowercase().ends_with(ending);
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    has_ending(".json") || !has_ending(".md") && bytes.trim_ascii_start().starts_with(b"{")
}

fn combined_json_error(label: &str, bytes: &[u8]) -> PlanError {
    let place = SpecFile::new(label, &bytes[..0]);
    let what = "a JSON plan cannot be combined with other files";
    match place {
        Ok(file) => {
            PlanError::wrong(vec![file.problem(0, what, "name it alone, or name only Markdown files")])
        }
        Err(error) => error,
    }
}

fn read_markdown(documents: &[(&str, &[u8])]) -> Result<Plan, PlanError> {
    let decoded: Vec<Option<(String, &str)>> = documents.iter().map(|(_, bytes)| decode(bytes)).collect();
    let (mut files, mut problems) = (Vec::new(), Vec::new());
    for ((label, bytes), decoded) in documents.iter().zip(&decoded) {
        let bytes = decoded.as_ref().map_or(*bytes, |(text, _)| text.as_bytes());
        match SpecFile::new(label, bytes) {
            Ok(file) => files.push(file),
            Err(PlanError::Wrong { problems: mut found, .. }) => problems.append(&mut found),
            Err(error) => return Err(error),
        }
    }
    if !problems.is_empty() {
        return Err(PlanError::wrong(problems));
    }
    let numbered: Vec<(usize, &SpecFile<'_>)> = files.iter().enumerate().collect();
    let (mut found, unread, reds) = markdown::read(&numbered);
    let empty = without_tasks(&files, |at| found.drafts.iter().any(|draft| draft.place.file == at));
    if found.drafts.is_empty() && found.problems.is_empty() {
        return Err(wrong(&files, empty, found.warnings));
    }
    found.warnings.extend(empty);
    for (file, (_, encoding)) in
        files.iter().zip(&decoded).filter_map(|(file, found)| Some((file, found.as_ref()?)))
    {
        let what =
            format!("this file is not UTF-8; it is read as {encoding}, and its boxes cannot be ticked");
        found.warnings.push(file.problem(0, what, "save the file as UTF-8"));
    }
    let mut plan = assemble(&files, found)?;
    forget_boxes(
        &mut plan,
        documents.iter().zip(&decoded).filter(|(_, decoded)| decoded.is_some()).map(|((label, _), _)| *label),
    );
    plan.unread = unread;
    plan.red_proposals = reds;
    plan.sort_warnings();
    Ok(plan)
}

/// Where a file is not UTF-8, the places of its boxes are not those of its bytes.
fn forget_boxes<'l>(plan: &mut Plan, labels: impl Iterator<Item = &'l str>) {
    let labels: Vec<&str> = labels.collect();
    let sources = plan.tasks.iter_mut().filter_map(|task| task.source.as_mut());
    for source in sources.filter(|source| labels.contains(&source.file.as_str())) {
        source.mark_at = None;
    }
}

fn without_tasks(files: &[SpecFile<'_>], has_tasks: impl Fn(usize) -> bool) -> Vec<Problem> {
    let empty = files.iter().enumerate().filter(|(at, _)| !has_tasks(*at));
    let problem = |file: &SpecFile<'_>| {
        if file.text.trim_start().starts_with('{') {
            let what = "this is JSON, but the name of the file says Markdown";
            return file.problem(0, what, "rename it, for example to task-tree.json");
        }
        file.problem(0, NO_TASKS, "write each task as '- [ ] text' or '- [ ] T001 text'")
    };
    empty.map(|(_, file)| problem(file)).collect()
}
