//! The words for what happens in a run.

use arborist_core::{
    gardener::Summary,
    message::{Status, plain_text},
    name::TaskId,
    pipeline::{Chosen, Happening, News},
};

use crate::ui::{Tone, Ui};

/// Tells each step in a line on standard error, as it happens.
pub(crate) fn plain<'a>(ui: &'a mut Ui, is_quiet: bool) -> Box<dyn FnMut(News) + Send + 'a> {
    Box::new(move |news| {
        if let Some(line) = line(ui, &news)
            && (!is_quiet || matches!(news.happening, Happening::Recorded { why: Some(_), .. }))
        {
            ui.err(&format!("{line}\n"));
        }
    })
}

fn line(ui: &Ui, news: &News) -> Option<String> {
    match &news.happening {
        Happening::Begins { name, attempt, step, by } => {
            let attempt =
                if attempt.0 == 0 { String::new() } else { format!(", attempt {}", attempt.ordinal()) };
            let task = ui.paint(Tone::Strong, news.task.as_ref().map_or("", TaskId::as_str));
            Some(format!("{task} {step} \"{}\" ({}{attempt})", plain_text(name), plain_text(by)))
        }
        Happening::Recorded { status, commit, why, .. } => {
            let tone = if why.is_some() || *status == Status::Failed { Tone::Bad } else { Tone::Good };
            let why = why
                .as_ref()
                .map(|why| format!(": {}", plain_text(why).replace('\n', " ")))
                .unwrap_or_default();
            Some(format!(
                "  {} {}{why}",
                ui.paint(Tone::Dim, &commit.short()),
                ui.paint(tone, status.as_str())
            ))
        }
        Happening::Waits { seconds, chosen: Chosen::ByProvider } => {
            Some(format!("  the provider asks us to wait for {seconds} s; no attempt is used up"))
        }
        Happening::Waits { seconds, chosen: Chosen::ByUs } => Some(format!(
            "  the provider cannot keep up; we try again in {seconds} s, and no attempt is used up"
        )),
        Happening::Note { words } => Some(plain_text(words)),
        Happening::Said { .. } | Happening::Turned => None,
    }
}

/// How many ids of a kind are listed.
const MOST: usize = 10;

/// What a run came to, to be pasted into a message.
pub(crate) fn summarize(ui: &mut Ui, summary: &Summary) {
    let list = |ids: &[TaskId]| {
        let mut shown: Vec<String> = ids.iter().take(MOST).map(ToString::to_string).collect();
        shown.extend((ids.len() > MOST).then(|| format!("and {} more", ids.len() - MOST)));
        shown.join(", ")
    };
    let mut parts = Vec::new();
    for (word, ids) in
        [("completed", &summary.completed), ("failed", &summary.failed), ("left", &summary.left)]
    {
        if !ids.is_empty() {
            parts.push(format!("{} {word} ({})", ids.len(), list(ids)));
        }
    }
    ui.line(&if parts.is_empty() { "nothing was left to do".to_owned() } else { parts.join(", ") });
}
