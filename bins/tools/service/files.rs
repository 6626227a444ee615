//! The tools that read and write files.

use std::io::Read;

use arborist_core::safe_files::{EnclosureError, InnerPath, WriteOutcome};

use super::{
    edit::{EditError, replace, with_line_ends_of},
    excerpt::{self, Excerpt, is_binary},
    offer::{EditArgs, ReadArgs, WriteArgs},
    root::Root,
};

/// The largest file that is written or edited, in bytes.
const LARGEST: u64 = 8 * 1024 * 1024;

/// The output of a tool, in pieces, or an error.
pub(super) type ToolOutput = Result<Vec<String>, String>;

pub(super) fn read_file(root: &Root, args: &ReadArgs) -> ToolOutput {
    let path = parse(&args.path)?;
    let file = root.enclosure.read(&path).map_err(|error| error.to_string())?;
    let size = file.metadata().map_or(0, |known| known.len());
    let read = excerpt::read(file, args.offset, args.limit);
    match read.map_err(|error| format!("'{path}' could not be read: {error}"))? {
        Excerpt::Binary => Err(format!("'{path}' is a binary file of {size} bytes")),
        Excerpt::Lines { text, note } => {
            Ok([text].into_iter().chain(note.map(|note| format!("[{note}]"))).collect())
        }
    }
}

pub(super) fn write_file(root: &Root, args: &WriteArgs) -> ToolOutput {
    let path = parse(&args.path)?;
    if args.content.len() as u64 > LARGEST {
        return Err(format!("'{path}' would be larger than {LARGEST} bytes"));
    }
    let content = match root.enclosure.read(&path) {
        Ok(old) => with_line_ends_of(&whole(&path, old).unwrap_or_default(), &args.content),
        Err(_) => args.content.clone(),
    };
    let written = root.enclosure.write(&path, content.as_bytes()).map_err(|error| error.to_string())?;
    let what = match written {
        WriteOutcome::Created => "created",
        WriteOutcome::Replaced => "replaced",
    };
    if let Some(planted) = root.take_planted_around(&path.to_string()) {
        return Err(planted);
    }
    Ok(vec![format!("{what} '{path}' ({} bytes)", content.len())])
}

pub(super) fn edit_file(root: &Root, args: &EditArgs) -> ToolOutput {
    let path = parse(&args.path)?;
    let old = whole(&path, root.enclosure.read(&path).map_err(|error| error.to_string())?)?;
    if is_binary(&old) {
        return Err(format!("'{path}' is a binary file of {} bytes", old.len()));
    }
    let new = replace(&old, &args.old_string, &args.new_string).map_err(|error| match error {
        EditError::Empty => {
            "old_string is empty; give the text to replace, or write the whole file with write_file"
                .to_owned()
        }
        EditError::Missing => {
            format!("'{path}' does not contain old_string; read it again and copy it exactly")
        }
        EditError::Repeated(count) => {
            format!("'{path}' contains old_string {count} times; include more of the surrounding text")
        }
        EditError::Same => "old_string and new_string are the same".to_owned(),
    })?;
    root.enclosure.write(&path, &new).map_err(|error| error.to_string())?;
    Ok(vec![format!("edited '{path}'")])
}

fn parse(path: &str) -> Result<InnerPath, String> {
    path.parse().map_err(|error: EnclosureError| error.to_string())
}

/// The whole file, if it is not too large.
pub(super) fn whole(path: &InnerPath, file: std::fs::File) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("'{path}' could not be read: {error}"))?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("'{path}' is larger than {LARGEST} bytes"));
    }
    Ok(bytes)
}
