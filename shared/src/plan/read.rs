//! Which reader a file is for, and how several files make one plan.

use super::{
    Plan, PlanError, Problem,
    assemble::{assemble, wrong},
    json, markdown,
    text::SpecFile,
};

impl Plan {
    /// Reads a plan from a file's content, JSON or Markdown. `label` is how the file is named in messages.
    pub fn read(label: &str, bytes: &[u8]) -> Result<Self, PlanError> {
        Self::read_all(&[(label, bytes)])
    }

    /// Reads several Markdown files as parts of one plan, in their order. JSON plans stand alone.
    pub fn read_all(documents: &[(&str, &[u8])]) -> Result<Self, PlanError> {
        let read = |(label, bytes): &(&str, &[u8])| is_json(label, bytes);
        match documents {
            [(label, bytes)] if is_json(label, bytes) => json::read(SpecFile::new(label, bytes)?),
            _ => match documents.iter().find(|document| read(document)) {
                Some((label, bytes)) => Err(stands_alone(label, bytes)),
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

fn stands_alone(label: &str, bytes: &[u8]) -> PlanError {
    let place = SpecFile::new(label, &bytes[..0]);
    let what = "a JSON plan cannot be joined with other files";
    match place {
        Ok(file) => {
            PlanError::wrong(vec![file.problem(0, what, "name it alone, or name only Markdown files")])
        }
        Err(error) => error,
    }
}

fn read_markdown(documents: &[(&str, &[u8])]) -> Result<Plan, PlanError> {
    let (mut files, mut problems) = (Vec::new(), Vec::new());
    for (label, bytes) in documents {
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
    let mut plan = assemble(&files, found)?;
    plan.unread = unread;
    plan.red_proposals = reds;
    plan.sort_warnings();
    Ok(plan)
}

fn without_tasks(files: &[SpecFile<'_>], has_tasks: impl Fn(usize) -> bool) -> Vec<Problem> {
    let what = "no task was found: there is no box, no id, no numbered step and no list below a heading such as 'Tasks'";
    let fix = "write each task as '- [ ] text' or '- [ ] T001 text'";
    let empty = files.iter().enumerate().filter(|(at, _)| !has_tasks(*at));
    empty.map(|(_, file)| file.problem(0, what, fix)).collect()
}
