//! Commit messages that contain the state of a task. Only this module reads and writes them.
//!
//! A message is a subject `task({branch}@{task}@{status}): {text}`, a body in which every line of foreign text is
//! quoted with `> `, and a last paragraph of trailers. Only a *sound* message counts; see [`read`].

mod body;
mod cleanup;
mod git_trailers;
mod hidden;
mod key;
mod nearest;
mod read;
mod recognise;
mod status;
mod subject;
mod trailers;
mod write;

pub use body::{
    Body, BodySection, counted, escape_json, first_of, last_chars, one_line, plain_line, plain_text, visible,
    visible_lines,
};
pub use cleanup::{Cleanup, CommentPrefix, Editing, Recorded, final_message};
pub use git_trailers::read_as_git;
pub use hidden::hidden_length_in_json;
pub use key::Key;
pub use nearest::{is_mistyped, misspelt, nearest};
pub use read::{Fault, MessageReading, read, read_to_check};
pub use recognise::{claims_to_be_ours, could_be_ours};
pub use status::{Status, Step};
pub use subject::{Subject, SubjectParts};
pub use trailers::{OtherLandings, PlanRef, Trailers};
pub use write::Message;
