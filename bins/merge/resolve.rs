//! Resolving a conflict by hand: a worktree with the conflict in it, and back into the queue.

use arborist_core::{
    failure::Exit,
    message::{plain_text, visible},
    name::TaskId,
    queue::{Handover, Queue},
};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    open::Site,
    run::{LandingArgs, options},
    words,
};
use crate::{clock, document::print, entry::Outcome, gardening::watch_signals, ui::Ui};

/// Where a conflict is resolved.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ResolveDocument {
    /// The task.
    pub task: String,
    /// `opened`, `unfinished` or `taken`.
    pub state: String,
    /// The worktree with the conflict in it; null once its result was taken.
    pub path: Option<String>,
    /// The files there that are not resolved yet.
    pub unresolved: Vec<String>,
}

/// Opens the conflict of a task, or takes back what was made of it.
pub(super) fn run(task: &TaskId, args: &LandingArgs, ui: &mut Ui) -> Outcome {
    let site = Site::open(&args.scope, ui)?;
    let stored = site.store().find(&site.scope.branch, task)?;
    let ticket = stored.ok_or_else(|| site.not_queued(task))?.ticket;
    let options = options((&site, &watch_signals()), args, ui)?;
    let queue = Queue::open(&site.repository, site.scope.branch.clone(), ticket.into, clock::now)?;
    let handover = queue.hand_over(task, &options, &mut |news| words::tell(ui, &site, &news))?;
    if args.scope.json {
        print(ui, &document(task, &handover))?;
    } else {
        tell(task, &handover, &site, ui);
    }
    Ok(if matches!(handover, Handover::Unfinished(..)) { Exit::No } else { Exit::Done })
}

fn document(task: &TaskId, handover: &Handover) -> ResolveDocument {
    let (state, path, unresolved) = match handover {
        Handover::Opened(path) => ("opened", Some(path), Vec::new()),
        Handover::Unfinished(path, left) => ("unfinished", Some(path), left.clone()),
        Handover::Taken => ("taken", None, Vec::new()),
    };
    ResolveDocument {
        task: task.to_string(),
        state: state.to_owned(),
        path: path.map(|path| path.display().to_string()),
        unresolved,
    }
}

fn tell(task: &TaskId, handover: &Handover, site: &Site, ui: &mut Ui) {
    match handover {
        Handover::Opened(path) => {
            ui.line(&path.display().to_string());
            ui.hint(&format!(
                "the conflict of {task} is there: edit its files until no marks are left ('git add' or 'git rm' what has none), then run, there or here: {command}",
                command = site.command(&format!("resolve {task}"))
            ));
        }
        Handover::Unfinished(path, left) => {
            ui.line(&path.display().to_string());
            ui.warn(&plain_text(&format!("not resolved yet: {}", left.join(", "))).replace('\n', " "));
            ui.hint("resolve them and 'git add' or 'git rm' them there, then run the same command again");
        }
        Handover::Taken => {
            ui.line(&format!("{task} is in the queue again"));
            let land = site.command("run");
            if site.is_in_conflict {
                let main = visible(&site.repository.dir.to_string_lossy());
                ui.hint(&format!("this folder is gone; land it with: cd '{main}' && {land}"));
            } else {
                ui.hint(&format!("land it with: {land}"));
            }
        }
    }
}
