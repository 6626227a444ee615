//! Files beside what agents can reach, which are written so that a link that somebody put there leads nowhere.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

/// Replaces a file in one step, and makes its directories. A link in its place is replaced, and never followed.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)?;
    if !fs::symlink_metadata(folder)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let draft = folder.join(format!(".{}-{number}.tmp", std::process::id()));
    write_anew(&draft, bytes)?;
    fs::rename(&draft, path).inspect_err(|_| drop(fs::remove_file(&draft)))
}

/// Writes a file that is not there. What lies in its place is left of somebody who was killed, or a trap.
pub fn write_anew(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::create_new(path)?.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_replaced_and_their_targets_untouched() {
        let folder = tempfile::tempdir().unwrap();
        let (theirs, ours) = (folder.path().join("theirs"), folder.path().join("deep/ours"));
        fs::write(&theirs, "theirs").unwrap();
        fs::create_dir(folder.path().join("deep")).unwrap();
        symlink(&theirs, &ours).unwrap();
        replace_file(&ours, b"ours").unwrap();
        assert_eq!(fs::read(&theirs).unwrap(), b"theirs");
        assert_eq!(fs::read(&ours).unwrap(), b"ours");
        assert!(fs::symlink_metadata(&ours).unwrap().is_file());
        symlink(folder.path(), folder.path().join("linked")).unwrap();
        assert!(replace_file(&folder.path().join("linked/theirs"), b"ours").is_err());
        assert_eq!(fs::read(&theirs).unwrap(), b"theirs");
    }
}
