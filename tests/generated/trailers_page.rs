//! git-arborist-trailers(5): the format of task commits, from the tables that read and write them.

use arborist_core::{
    message::{Body, Key, Message, Status, Step, Subject, SubjectParts, Trailers},
    name::Attempt,
};

use crate::roff::{MARKER, entry, literal, plain, title};

const FRAME: &str = include_str!("git-arborist-trailers.5.in");

pub(crate) fn page() -> String {
    FRAME
        .replace("@HEAD@\n", &format!("{MARKER}{}", title("git-arborist-trailers", 5)))
        .replace("@EXAMPLE@\n", &literal(&example()))
        .replace("@STATUSES@\n", &Status::ALL.iter().copied().map(status).collect::<String>())
        .replace("@KEYS@\n", &Key::ALL.iter().copied().map(key).collect::<String>())
        .replace("@STEPS@\n", &format!("{}.\n", plain(&steps())))
}

/// The status, the words of its subject, and the trailers that it asks for.
fn status(status: Status) -> String {
    let name = if matches!(status, Status::Plan | Status::Turn) { "<words>" } else { "<name>" };
    let words = SubjectParts { name, attempt: Attempt(0), max: 5 }.text(status);
    let trailers = status.required().iter().map(|key| {
        let name = key.as_str();
        match (key, status.outcome()) {
            (Key::Step, _) => format!("{name}: {}", status.step().as_str()),
            (key, Some((outcome, value))) if *key == outcome => format!("{name}: {value}"),
            _ => name.to_owned(),
        }
    });
    let lines: String = trailers.map(|line| format!(".br\n{}\n", plain(&line))).collect();
    let task = if status.names_task() { "<task>" } else { "" };
    let subject = format!("task(<branch>@{task}@{status}): {words}");
    format!(".TP\n\\fB{}\\fR\n\\fI{}\\fR\n{lines}", plain(status.as_str()), plain(&subject))
}

fn key(key: Key) -> String {
    let meaning = key.meaning().replace('`', "");
    entry(key.as_str(), &format!("{meaning} Value: {}.", key.expected()))
}

fn steps() -> String {
    Step::ALL.iter().map(|step| step.as_str()).collect::<Vec<_>>().join(", ")
}

/// A message as it is really written.
fn example() -> String {
    let wording = SubjectParts { name: "add a schema", attempt: Attempt(1), max: 5 };
    let subject = Subject {
        branch: "feature/auth".parse().expect("a branch"),
        task: Some("T001".parse().expect("a task")),
        status: Status::TestFail,
        text: wording.text(Status::TestFail),
    };
    let body = Body::new("Test (unit) stderr (last 1000 chars):", "assertion failed: users has an index");
    let mut trailers = Trailers::default();
    for (key, value) in [(Key::Retry, "1"), (Key::TestType, "unit"), (Key::TestRuntime, "3.2")] {
        trailers.set(key, value).expect("a valid value");
    }
    Message::compose(subject, body, &trailers).expect("a sound message").render()
}
